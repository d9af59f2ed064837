// What kernels ask of their arguments before they touch any memory.
#pragma once

#include "core/kernel.h"
#include "kernels/requantize.h"

namespace hil {

inline bool aligned(const Tensor& t) {
  const size_t size = element_size(t.type);
  return size == 0 || (reinterpret_cast<uintptr_t>(t.data) & (size - 1)) == 0;
}

/// Says what is wrong with a tensor that check_tensor refuses.
Error tensor_error(KernelContext& ctx, const char* name, const Tensor& t, ScalarType type);

/// A tensor of the expected type, bound, aligned, and as large as its shape says.
inline Error check_tensor(KernelContext& ctx, const char* name, const Tensor& t, ScalarType type) {
  if (t.type == type && (t.data != nullptr || t.numel == 0) && aligned(t)) return Error::Ok;
  return tensor_error(ctx, name, t, type);
}

Error check_numel(KernelContext& ctx, const char* name, const Tensor& t, size_t expected);

Error range_error(KernelContext& ctx, const char* name, int32_t value, int32_t low, int32_t high);

[[gnu::always_inline]] inline Error check_range(KernelContext& ctx, const char* name, int32_t value,
                                                int32_t low, int32_t high) {
  const uint32_t reach = static_cast<uint32_t>(high) - static_cast<uint32_t>(low);
  if (static_cast<uint32_t>(value) - static_cast<uint32_t>(low) <= reach) return Error::Ok;
  return range_error(ctx, name, value, low, high);
}

/// A shift that the definition's arithmetic has a meaning for.
inline Error check_shift(KernelContext& ctx, const char* name, int32_t shift) {
  return check_range(ctx, name, shift, kMinShift, kMaxShift);
}

/// A dimension counted from either end; a tensor of rank 0 has none.
Error check_dim(KernelContext& ctx, int32_t dim, size_t rank, size_t* axis);

/// How an int8 operator bounds its output, in the order of its arguments.
struct OutputBounds {
  int32_t offset, min, max;
};

/// The offset fits 32 bits with room to add, the bounds fit int8.
Error check_output_bounds(KernelContext& ctx, const OutputBounds& bounds);

/// Per-channel scales: two int32 tensors with an entry for each output channel.
Error check_channel_scales(KernelContext& ctx, const Tensor& multipliers, const Tensor& shifts,
                           size_t channels);

}  // namespace hil
