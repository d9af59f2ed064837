// cortex_m::quantized_mul.out(self, zero_point, other, zero_point,
//   output zero_point, multiplier, shift, out)
#include "kernels/elementwise.h"
#include "kernels/isa.h"
#include "kernels/operator.h"
#include "kernels/quantized_mul_helium.h"
#include "kernels/quantized_mul_scalar.h"

namespace hil {

namespace {

/// ExecuTorch's kernel takes any zero point (cortex_m_ops_common.h does not look at it), and its
/// quantiser writes one of millions for a factor that is nearly constant: -10416605 for a hardswish
/// of torchvision's mobilenet_v3_small. An int8 less this still fits an int32.
constexpr int32_t kWidestZero = 1 << 30;

}  // namespace

Error op_quantized_mul(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const int32_t self_zero = ctx.int32(args, 1);
  int32_t rest[4];  // other's and the output's zero point, multiplier, shift
  const Tensor& other = ctx.tensor(args, 2);
  ctx.integers(args, 3, rest, 4);
  Tensor& out = ctx.tensor(args, 7);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_range(ctx, "self zero point", self_zero, -kWidestZero, kWidestZero));
  HIL_TRY(check_range(ctx, "other zero point", rest[0], -kWidestZero, kWidestZero));
  HIL_TRY(check_range(ctx, "output zero point", rest[1], INT16_MIN, INT16_MAX));
  HIL_TRY(check_shift(ctx, "output shift", rest[3]));
  Pairs pairs;
  HIL_TRY(pair_up(ctx, self, other, out, &pairs));

  const int32_t m = rest[2], s = rest[3];
  const int32_t multipliers[4] = {m, m, m, m}, shifts[4] = {s, s, s, s};
  const Product product = {
      self_zero, rest[0], {multipliers, shifts, 0, rest[1], INT8_MIN, INT8_MAX}};
  for (size_t r = 0; r < pairs.rows; ++r) {
    const int8_t* x = pairs.a + r * pairs.a_step;
    const int8_t* y = pairs.b + r * pairs.b_step;
    isa::multiply_row(product, x, y, pairs.out + r * pairs.row, pairs.row);
  }
  return Error::Ok;
}
HIL_OPERATOR("cortex_m::quantized_mul.out", op_quantized_mul);

}  // namespace hil
