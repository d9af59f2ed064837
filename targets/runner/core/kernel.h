// What a kernel is given, and how it becomes known to the runner.
#pragma once

#include "core/arena.h"
#include "core/error.h"
#include "core/value.h"

namespace hil {

/// Arguments of one KernelCall: the operator's schema arguments in order, then
/// its out tensor (ExecuTorch's emitter repeats the out value as the return).
using Args = Span<Value* const>;

class KernelContext {
 public:
  explicit KernelContext(const char* op_name, Arena* temp = nullptr)
      : op_name_(op_name), temp_(temp) {}

  /// Logs "<operator>: <message>" at level E and returns `error`.
  __attribute__((format(printf, 3, 4))) Error fail(Error error, const char* text, ...);

  /// Typed access; a wrong index or tag is recorded and a harmless value is
  /// returned, so a kernel reads all its arguments and then checks ok() once.
  Tensor& tensor(Args args, size_t index) {
    if (index < args.size() && args[index]->tag == Tag::Tensor) return args[index]->tensor;
    return no_tensor(index);
  }
  /// Null for a None argument.
  Tensor* optional_tensor(Args args, size_t index);
  int64_t integer(Args args, size_t index);
  /// `count` consecutive integers of 32 bits.
  void integers(Args args, size_t first, int32_t* out, size_t count) {
    bool good = first + count <= args.size();
    for (size_t i = 0; good && i < count; ++i) {
      const Value& value = *args[first + i];
      out[i] = static_cast<int32_t>(value.as_int);
      good = is_int32(value);
    }
    if (!good) reject_integers(args, first, out, count);
  }
  int32_t int32(Args args, size_t index) {
    int32_t value;
    integers(args, index, &value, 1);
    return value;
  }
  double number(Args args, size_t index);  // Double or Int
  bool boolean(Args args, size_t index);
  /// An int list read into `out`; its length must be exactly `count`.
  void int_list(Args args, size_t index, int32_t* out, size_t count);
  /// An int list of any length up to `capacity`; returns the length.
  size_t int_list_upto(Args args, size_t index, int32_t* out, size_t capacity);

  /// Tensors of a list, all present.
  Span<Value* const> tensor_list(Args args, size_t index);
  /// Tensors of a list, null for a None.
  Span<Value* const> optional_tensor_list(Args args, size_t index);

  /// `count` elements for the time of the call; MemoryAllocationFailed, logged, when the temp
  /// pool has no room for them.
  template <typename T>
  Error scratch(size_t count, Span<T>* out) {
    if (temp_ != nullptr) *out = temp_->make<T>(count);
    if (out->size() == count) return Error::Ok;
    return no_scratch(uint64_t{count} * sizeof(T));
  }

  bool ok() const { return bad_argument_ < 0; }
  /// InvalidArgument, logged with the index of the first bad argument.
  Error argument_error();

  const char* op_name() const { return op_name_; }

 private:
  static bool is_int32(const Value& value) {
    return value.tag == Tag::Int && static_cast<int32_t>(value.as_int) == value.as_int;
  }
  void reject(size_t index);
  void reject_integers(Args args, size_t first, int32_t* out, size_t count);
  Tensor& no_tensor(size_t index);
  Error no_scratch(uint64_t bytes);
  const char* op_name_;
  Arena* temp_;
  int bad_argument_ = -1;
};

using KernelFunction = Error (*)(KernelContext& context, Args args);

struct KernelEntry {
  const char* name;  // "namespace::operator.overload", as in the program
  KernelFunction function;
};

/// All kernels of this build (kernels/registry.cmake).
Span<const KernelEntry> kernel_table();

/// Null when the operator is not among `kernels`.
const KernelEntry* find_kernel(Span<const KernelEntry> kernels, const char* name);

}  // namespace hil
