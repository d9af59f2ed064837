#include "core/kernel.h"

#include <cstdarg>
#include <cstring>

#include "core/format.h"
#include "core/log.h"

namespace hil {

Error KernelContext::fail(Error error, const char* text, ...) {
  char message[kMaxLogLine];
  va_list arguments;
  va_start(arguments, text);
  format(message, sizeof(message), text, arguments);
  va_end(arguments);
  HIL_LOG(Error, "%s: %s", op_name_, message);
  return error;
}

void KernelContext::reject(size_t index) {
  if (bad_argument_ < 0) bad_argument_ = static_cast<int>(index);
}

Tensor& KernelContext::no_tensor(size_t index) {
  reject(index);
  static Tensor empty;
  empty = Tensor();
  return empty;
}

Tensor* KernelContext::optional_tensor(Args args, size_t index) {
  if (index < args.size()) {
    if (args[index]->tag == Tag::Tensor) return &args[index]->tensor;
    if (args[index]->tag == Tag::None) return nullptr;
  }
  reject(index);
  return nullptr;
}

int64_t KernelContext::integer(Args args, size_t index) {
  if (index < args.size() && args[index]->tag == Tag::Int) return args[index]->as_int;
  reject(index);
  return 0;
}

void KernelContext::reject_integers(Args args, size_t first, int32_t* out, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const Value* value = first + i < args.size() ? args[first + i] : nullptr;
    if (value == nullptr || !is_int32(*value)) reject(first + i);
    out[i] = 0;
  }
}

double KernelContext::number(Args args, size_t index) {
  if (index < args.size() && args[index]->tag == Tag::Double) return args[index]->as_double;
  return static_cast<double>(integer(args, index));
}

bool KernelContext::boolean(Args args, size_t index) {
  if (index < args.size() && args[index]->tag == Tag::Bool) return args[index]->as_bool;
  reject(index);
  return false;
}

void KernelContext::int_list(Args args, size_t index, int32_t* out, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = 0;
  if (int_list_upto(args, index, out, count) != count) reject(index);
}

size_t KernelContext::int_list_upto(Args args, size_t index, int32_t* out, size_t capacity) {
  if (index >= args.size() || args[index]->tag != Tag::IntList ||
      args[index]->list.size() > capacity) {
    reject(index);
    return 0;
  }
  const Span<Value* const> items = args[index]->list;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!is_int32(*items[i])) {
      reject(index);
      return 0;
    }
    out[i] = static_cast<int32_t>(items[i]->as_int);
  }
  return items.size();
}

Span<Value* const> KernelContext::tensor_list(Args args, size_t index) {
  if (index < args.size() && args[index]->tag == Tag::TensorList) return args[index]->list;
  reject(index);
  return {};
}

Span<Value* const> KernelContext::optional_tensor_list(Args args, size_t index) {
  if (index < args.size() && args[index]->tag == Tag::OptionalTensorList) return args[index]->list;
  return tensor_list(args, index);
}

Error KernelContext::no_scratch(uint64_t bytes) {
  return fail(Error::MemoryAllocationFailed,
              "temp allocator too small: %llu bytes needed, %llu available; "
              "build with a larger HIL_TEMP_POOL_BYTES",
              static_cast<unsigned long long>(bytes),
              static_cast<unsigned long long>(temp_ == nullptr ? 0 : temp_->available()));
}

Error KernelContext::argument_error() {
  return fail(Error::InvalidArgument, "argument %d is missing, has the wrong type or is too large",
              bad_argument_);
}

const KernelEntry* find_kernel(Span<const KernelEntry> kernels, const char* name) {
  for (const KernelEntry& entry : kernels) {
    if (std::strcmp(entry.name, name) == 0) return &entry;
  }
  return nullptr;
}

}  // namespace hil
