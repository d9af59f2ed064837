// cortex_m::quantized_div.out(self, zero_point, other, zero_point, output zero_point,
//   output_scale, out) for int8 and int16
//
// Definition, in float32: the quotient of the centred operands (0 for a zero divisor) times the
// scale, rounded half to even.
#include <cmath>

#include "kernels/checks.h"
#include "kernels/layout.h"
#include "kernels/operator.h"

namespace hil {

namespace {

struct Division {
  int32_t self_zero, other_zero, output_zero;
  float scale;
  float low, high;

  float operator()(int32_t self, int32_t other) const {
    const float divisor = static_cast<float>(other - other_zero);
    const float quotient = divisor == 0.0f ? 0.0f : static_cast<float>(self - self_zero) / divisor;
    const float value = std::nearbyint(quotient * scale) + static_cast<float>(output_zero);
    const float raised = value < low ? low : value;
    return raised > high ? high : raised;
  }
};

template <typename T>
void divide(const Division& d, const Tensor& self, const Tensor& other, Tensor& out) {
  const T *a = self.as<T>(), *b = other.as<T>();
  T* target = out.as<T>();
  for (size_t i = 0; i < out.numel; ++i) target[i] = static_cast<T>(d(a[i], b[i]));
}

}  // namespace

Error op_quantized_div(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const int32_t self_zero = ctx.int32(args, 1);
  const Tensor& other = ctx.tensor(args, 2);
  const int32_t other_zero = ctx.int32(args, 3);
  const int32_t output_zero = ctx.int32(args, 4);
  const double scale = ctx.number(args, 5);
  Tensor& out = ctx.tensor(args, 6);
  if (!ctx.ok()) return ctx.argument_error();
  const bool is_byte = self.type == ScalarType::Char;
  if (!is_byte && self.type != ScalarType::Short) {
    return ctx.fail(Error::InvalidArgument, "self is neither int8 nor int16");
  }
  HIL_TRY(check_tensor(ctx, "self", self, self.type));
  HIL_TRY(check_tensor(ctx, "other", other, self.type));
  HIL_TRY(check_tensor(ctx, "out", out, self.type));
  HIL_TRY(check_range(ctx, "self zero point", self_zero, INT16_MIN, INT16_MAX));
  HIL_TRY(check_range(ctx, "other zero point", other_zero, INT16_MIN, INT16_MAX));
  HIL_TRY(check_range(ctx, "output zero point", output_zero, INT16_MIN, INT16_MAX));
  if (!std::isfinite(static_cast<float>(scale))) {
    return ctx.fail(Error::InvalidArgument, "output scale is not finite");
  }
  if (!same_layout(self, other) || !same_layout(self, out)) {
    return ctx.fail(Error::InvalidArgument, "self, other and out differ in shape or dim order");
  }
  const Division division = {self_zero,
                             other_zero,
                             output_zero,
                             static_cast<float>(scale),
                             is_byte ? INT8_MIN * 1.0f : INT16_MIN * 1.0f,
                             is_byte ? INT8_MAX * 1.0f : INT16_MAX * 1.0f};
  is_byte ? divide<int8_t>(division, self, other, out)
          : divide<int16_t>(division, self, other, out);
  return Error::Ok;
}
HIL_OPERATOR("cortex_m::quantized_div.out", op_quantized_div);

}  // namespace hil
