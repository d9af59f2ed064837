// cortex_m::quantized_mul.out(self, zero_point, other, zero_point,
//   output zero_point, multiplier, shift, out)
#include "kernels/elementwise.h"
#include "kernels/operator.h"

namespace hil {

namespace {

struct Product {
  int32_t zero_a, zero_b;
  OutputStage stage;
};

void multiply_row(const Product& p, const int8_t* a, const int8_t* b, int8_t* out, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = to_output(wrapping_multiply(a[i] - p.zero_a, b[i] - p.zero_b), p.stage, 0);
  }
}

#if defined(__ARM_FEATURE_MVE)

void multiply_row_helium(const Product& p, const int8_t* a, const int8_t* b, int8_t* out,
                         size_t count) {
  const int32x4_t multiplier = vdupq_n_s32(*p.stage.multipliers);
  const int32x4_t shift = vdupq_n_s32(*p.stage.shifts);
  const int32x4_t low = vdupq_n_s32(p.stage.min), high = vdupq_n_s32(p.stage.max);
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(count - i);
    const int32x4_t x = vsubq_n_s32(vldrbq_z_s32(a + i, lanes), p.zero_a);
    const int32x4_t y = vsubq_n_s32(vldrbq_z_s32(b + i, lanes), p.zero_b);
    const int32x4_t bytes =
        to_output<Rounding::Away>(vmulq_s32(x, y), multiplier, shift, p.stage.offset, low, high);
    vstrbq_p_s32(out + i, bytes, lanes);
  }
}

#endif

}  // namespace

Error op_quantized_mul(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const int32_t self_zero = ctx.int32(args, 1);
  int32_t rest[4];  // other's and the output's zero point, multiplier, shift
  const Tensor& other = ctx.tensor(args, 2);
  ctx.integers(args, 3, rest, 4);
  Tensor& out = ctx.tensor(args, 7);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_range(ctx, "self zero point", self_zero, INT16_MIN, INT16_MAX));
  HIL_TRY(check_range(ctx, "other zero point", rest[0], INT16_MIN, INT16_MAX));
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
    int8_t* target = pairs.out + r * pairs.row;
#if defined(__ARM_FEATURE_MVE)
    if (vector_scale(m, s)) {
      multiply_row_helium(product, x, y, target, pairs.row);
      continue;
    }
#endif
    multiply_row(product, x, y, target, pairs.row);
  }
  return Error::Ok;
}
HIL_OPERATOR("cortex_m::quantized_mul.out", op_quantized_mul);

}  // namespace hil
