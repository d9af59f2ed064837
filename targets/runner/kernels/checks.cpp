#include "kernels/checks.h"

namespace hil {

Error tensor_error(KernelContext& ctx, const char* name, const Tensor& t, ScalarType type) {
  if (t.type != type) {
    return ctx.fail(Error::InvalidArgument, "%s has element type %d, expected %d", name,
                    static_cast<int>(t.type), static_cast<int>(type));
  }
  if (t.data == nullptr) return ctx.fail(Error::InvalidArgument, "%s has no storage", name);
  return ctx.fail(Error::InvalidArgument, "%s is not aligned", name);
}

Error check_numel(KernelContext& ctx, const char* name, const Tensor& t, size_t expected) {
  if (t.numel == expected) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "%s has %u elements, expected %u", name,
                  static_cast<unsigned>(t.numel), static_cast<unsigned>(expected));
}

Error range_error(KernelContext& ctx, const char* name, int32_t value, int32_t low, int32_t high) {
  return ctx.fail(Error::InvalidArgument, "%s is %ld, expected %ld..%ld", name,
                  static_cast<long>(value), static_cast<long>(low), static_cast<long>(high));
}

Error check_dim(KernelContext& ctx, int32_t dim, size_t rank, size_t* axis) {
  const int32_t count = static_cast<int32_t>(rank);
  if (dim < -count || dim >= count) return range_error(ctx, "dim", dim, -count, count - 1);
  *axis = static_cast<size_t>(dim < 0 ? dim + count : dim);
  return Error::Ok;
}

Error check_output_bounds(KernelContext& ctx, const OutputBounds& bounds) {
  HIL_TRY(check_range(ctx, "output offset", bounds.offset, INT16_MIN, INT16_MAX));
  HIL_TRY(check_range(ctx, "activation min", bounds.min, INT8_MIN, INT8_MAX));
  return check_range(ctx, "activation max", bounds.max, INT8_MIN, INT8_MAX);
}

Error check_channel_scales(KernelContext& ctx, const Tensor& multipliers, const Tensor& shifts,
                           size_t channels) {
  HIL_TRY(check_tensor(ctx, "requantize multipliers", multipliers, ScalarType::Int));
  HIL_TRY(check_tensor(ctx, "requantize shifts", shifts, ScalarType::Int));
  HIL_TRY(check_numel(ctx, "requantize multipliers", multipliers, channels));
  HIL_TRY(check_numel(ctx, "requantize shifts", shifts, channels));
  for (size_t i = 0; i < channels; ++i) {
    HIL_TRY(check_shift(ctx, "requantize shift", shifts.as<int32_t>()[i]));
  }
  return Error::Ok;
}

}  // namespace hil
