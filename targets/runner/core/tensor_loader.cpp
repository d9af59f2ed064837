#include "core/tensor_loader.h"

#include <cstring>

#include "core/log.h"
#include "core/schema.h"

namespace hil {

namespace fb = executorch_flatbuffer;

namespace {

constexpr uint64_t kMaxTensorBytes = SIZE_MAX / 2 < (uint64_t{1} << 40) ? SIZE_MAX / 2
                                                                        : (uint64_t{1} << 40);

Error invalid_tensor(const char* what) {
  HIL_LOG(Error, "invalid tensor: %s", what);
  return Error::InvalidProgram;
}

bool is_permutation(const uint8_t* order, size_t rank) {
  unsigned seen = 0;
  for (size_t i = 0; i < rank; ++i) {
    if (order[i] >= rank || (seen >> order[i] & 1u) != 0) return false;
    seen |= 1u << order[i];
  }
  return true;
}

/// Element count and bytes of `t`, false when they exceed what can be addressed.
bool count_elements(Tensor* t) {
  const uint64_t limit = kMaxTensorBytes / element_size(t->type);
  uint64_t numel = 1;
  for (size_t i = 0; i < t->rank; ++i) {
    if (t->sizes[i] < 0) return false;
    const uint64_t extent = static_cast<uint64_t>(t->sizes[i]);
    if (extent != 0 && numel > limit / extent) return false;
    numel *= extent;
  }
  t->numel = static_cast<size_t>(numel);
  t->nbytes = t->numel * element_size(t->type);
  return true;
}

Error bind_planned(const fb::AllocationDetails& place, Span<const Span<uint8_t>> planned,
                   Tensor* out) {
  if (place.memory_id() == 0 || place.memory_id() > planned.size()) {
    return invalid_tensor("memory id out of range");
  }
  const Span<uint8_t> buffer = planned[place.memory_id() - 1];
  const uint64_t offset = uint64_t{place.memory_offset_high()} << 32 | place.memory_offset_low();
  if (offset > buffer.size() || out->nbytes > buffer.size() - offset) {
    return invalid_tensor("its planned place lies outside the planned buffer");
  }
  out->data = buffer.data() + offset;
  return Error::Ok;
}

Error copy_initial_state(const Program& program, const fb::Tensor& source, Tensor* out) {
  const fb::ExtraTensorInfo* extra = source.extra_tensor_info();
  Span<const uint8_t> state;
  const Error error =
      program.initial_state(extra == nullptr ? 0 : extra->mutable_data_segments_idx(),
                            source.data_buffer_idx(), out->nbytes, &state);
  if (error == Error::Ok && !state.empty()) std::memcpy(out->data, state.data(), state.size());
  return error;
}

}  // namespace

Error decode_shape(const fb::Tensor& source, Tensor* out) {
  *out = Tensor();
  out->type = static_cast<ScalarType>(source.scalar_type());
  if (element_size(out->type) == 0) {
    HIL_LOG(Error, "tensors of scalar type %d are not supported",
            static_cast<int>(source.scalar_type()));
    return Error::NotSupported;
  }
  if (source.storage_offset() != 0) return invalid_tensor("storage offset is not zero");
  if (source.shape_dynamism() != fb::TensorShapeDynamism_STATIC &&
      source.shape_dynamism() != fb::TensorShapeDynamism_DYNAMIC_BOUND) {
    HIL_LOG(Error, "tensors of unbounded dynamic shape are not supported");
    return Error::NotSupported;
  }
  const size_t rank = source.sizes() == nullptr ? 0 : source.sizes()->size();
  const size_t ordered = source.dim_order() == nullptr ? 0 : source.dim_order()->size();
  if (rank > kMaxRank) return invalid_tensor("too many dimensions");
  if (ordered != rank) return invalid_tensor("dim order and sizes differ in length");
  out->rank = static_cast<uint8_t>(rank);
  if (rank > 0) {
    out->sizes = source.sizes()->data();
    out->dim_order = source.dim_order()->data();
    if (!is_permutation(out->dim_order, rank)) return invalid_tensor("dim order is no permutation");
  }
  return count_elements(out) ? Error::Ok : invalid_tensor("sizes negative or too large");
}

Error bind_storage(const Program& program, const fb::Tensor& source,
                   Span<const Span<uint8_t>> planned, Tensor* out) {
  const fb::ExtraTensorInfo* extra = source.extra_tensor_info();
  if (extra != nullptr && extra->location() != fb::TensorDataLocation_SEGMENT) {
    HIL_LOG(Error, "tensor data outside the program file is not supported");
    return Error::InvalidExternalData;
  }
  if (source.allocation_info() != nullptr) {
    HIL_TRY(bind_planned(*source.allocation_info(), planned, out));
    if (source.data_buffer_idx() != 0) HIL_TRY(copy_initial_state(program, source, out));
  } else if (source.data_buffer_idx() != 0) {
    Span<const uint8_t> data;
    HIL_TRY(program.constant(source.data_buffer_idx(), out->nbytes, &data));
    out->data = const_cast<uint8_t*>(data.data());
    out->constant = true;
  }
  if (reinterpret_cast<uintptr_t>(out->data) % element_size(out->type) != 0) {
    return invalid_tensor("its data is not aligned to its element size");
  }
  return Error::Ok;
}

}  // namespace hil
