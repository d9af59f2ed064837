// What kernels ask of their arguments before they touch any memory.
#pragma once

#include "core/kernel.h"
#include "kernels/requantize.h"

namespace hil {

/// Leaves the enclosing kernel when an expression does not give Error::Ok.
#define HIL_TRY(expression)                                        \
  do {                                                             \
    if (const ::hil::Error hil_error = (expression);               \
        hil_error != ::hil::Error::Ok)                             \
      return hil_error;                                            \
  } while (false)

inline bool aligned(const Tensor& t) {
  return reinterpret_cast<uintptr_t>(t.data) % (element_size(t.type) == 0 ? 1 : element_size(t.type)) == 0;
}

/// A tensor of the expected type, bound, aligned, and as large as its shape says.
inline Error check_tensor(KernelContext& ctx, const char* name, const Tensor& t, ScalarType type) {
  if (t.type != type) {
    return ctx.fail(Error::InvalidArgument, "%s has element type %d, expected %d", name,
                    static_cast<int>(t.type), static_cast<int>(type));
  }
  if (t.data == nullptr && t.numel != 0) {
    return ctx.fail(Error::InvalidArgument, "%s has no storage", name);
  }
  if (!aligned(t)) return ctx.fail(Error::InvalidArgument, "%s is not aligned", name);
  return Error::Ok;
}

inline Error check_numel(KernelContext& ctx, const char* name, const Tensor& t, size_t expected) {
  if (t.numel == expected) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "%s has %u elements, expected %u", name,
                  static_cast<unsigned>(t.numel), static_cast<unsigned>(expected));
}

inline Error check_range(KernelContext& ctx, const char* name, int64_t value, int64_t low,
                         int64_t high) {
  if (value >= low && value <= high) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "%s is %ld, expected %ld..%ld", name,
                  static_cast<long>(value), static_cast<long>(low), static_cast<long>(high));
}

inline Error check_scale(KernelContext& ctx, const char* name, int64_t multiplier, int64_t shift) {
  if (valid_multiplier(multiplier) && valid_shift(shift)) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "%s scale is out of range (shift %ld)", name,
                  static_cast<long>(shift));
}

/// int8 outputs: the offset fits 32 bits with room to add, the bounds fit int8.
inline Error check_output_bounds(KernelContext& ctx, int64_t offset, int64_t min, int64_t max) {
  HIL_TRY(check_range(ctx, "output offset", offset, INT16_MIN, INT16_MAX));
  HIL_TRY(check_range(ctx, "activation min", min, -128, 127));
  return check_range(ctx, "activation max", max, -128, 127);
}

/// Per-channel scales: two int32 tensors with an entry for each output channel.
inline Error check_channel_scales(KernelContext& ctx, const Tensor& multipliers,
                                  const Tensor& shifts, size_t channels) {
  HIL_TRY(check_tensor(ctx, "requantize multipliers", multipliers, ScalarType::Int));
  HIL_TRY(check_tensor(ctx, "requantize shifts", shifts, ScalarType::Int));
  HIL_TRY(check_numel(ctx, "requantize multipliers", multipliers, channels));
  HIL_TRY(check_numel(ctx, "requantize shifts", shifts, channels));
  for (size_t i = 0; i < channels; ++i) {
    HIL_TRY(check_range(ctx, "requantize shift", shifts.as<int32_t>()[i], kMinShift, kMaxShift));
  }
  return Error::Ok;
}

}  // namespace hil
