// cortex_m::quantized_add.out(self, zero_point, multiplier, shift, other, zero_point,
//   multiplier, shift, output zero_point, multiplier, shift, act_min, act_max, out)
#include "kernels/elementwise.h"
#include "kernels/operator.h"

namespace hil {

namespace {

constexpr int kHeadroom = 20;  // SHIFT_INT8 of passes_utils.py

struct Operand {
  int32_t zero_point, multiplier, shift;

  int32_t rescale(int8_t value) const {
    const int32_t centred = static_cast<int32_t>(value) - zero_point;
    return requantize(wrapping_multiply(centred, 1 << kHeadroom), multiplier, shift);
  }
};

struct Addition {
  Operand a, b;
  OutputStage stage;

  int8_t operator()(int8_t x, int8_t y) const {
    return to_output(wrapping_add(a.rescale(x), b.rescale(y)), stage, 0);
  }
};

void add_row(const Addition& add, const int8_t* a, const int8_t* b, int8_t* out, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = add(a[i], b[i]);
}

#if defined(__ARM_FEATURE_MVE)

/// A scale known to shift right, with everything but the data in general registers.
struct Rescale {
  int32_t multiplier, shift;
  int32_t sign_weight;  // 1 when there is a shift to round, 0 otherwise

  Rescale(int32_t m, int32_t s) : multiplier(m), shift(s), sign_weight(s < 0 ? 1 : 0) {}

  /// Not for INT32_MIN: the sums here are far from it.
  int32x4_t operator()(int32x4_t value) const {
    const int32x4_t high = vqrdmulhq_n_s32(value, multiplier);
    return vrshlq_n_s32(vmlaq_n_s32(high, vshrq_n_s32(high, 31), sign_weight), shift);
  }
};

bool add_row_helium(const Addition& add, const int8_t* a, const int8_t* b, int8_t* out,
                    size_t count) {
  const OutputStage& stage = add.stage;
  const auto within = [](const Operand& o) {
    return vector_scale(o.multiplier, o.shift) && o.zero_point >= -128 && o.zero_point <= 127;
  };
  if (!within(add.a) || !within(add.b) || !vector_scale(*stage.multipliers, *stage.shifts)) {
    return false;
  }
  const Rescale scale_a(add.a.multiplier, add.a.shift), scale_b(add.b.multiplier, add.b.shift);
  const Rescale scale_out(*stage.multipliers, *stage.shifts);
  const int32x4_t low = vdupq_n_s32(stage.min), high = vdupq_n_s32(stage.max);
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(count - i);
    const int32x4_t x = vsubq_n_s32(vldrbq_z_s32(a + i, lanes), add.a.zero_point);
    const int32x4_t y = vsubq_n_s32(vldrbq_z_s32(b + i, lanes), add.b.zero_point);
    const int32x4_t sum =
        vaddq_s32(scale_a(vshlq_n_s32(x, kHeadroom)), scale_b(vshlq_n_s32(y, kHeadroom)));
    const int32x4_t moved = vaddq_n_s32(scale_out(sum), stage.offset);
    vstrbq_p_s32(out + i, vminq_s32(vmaxq_s32(moved, low), high), lanes);
  }
  return true;
}

#endif

/// The integers of the call in their order.
struct Numbers {
  int32_t self[3], other[3];  // zero point, multiplier, shift
  int32_t output[5];          // zero point, multiplier, shift, bounds
};

Error check_numbers(KernelContext& ctx, const Numbers& n) {
  HIL_TRY(check_range(ctx, "self zero point", n.self[0], INT16_MIN, INT16_MAX));
  HIL_TRY(check_shift(ctx, "self shift", n.self[2]));
  HIL_TRY(check_range(ctx, "other zero point", n.other[0], INT16_MIN, INT16_MAX));
  HIL_TRY(check_shift(ctx, "other shift", n.other[2]));
  HIL_TRY(check_shift(ctx, "output shift", n.output[2]));
  return check_output_bounds(ctx, {n.output[0], n.output[3], n.output[4]});
}

}  // namespace

Error op_quantized_add(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const Tensor& other = ctx.tensor(args, 4);
  Tensor& out = ctx.tensor(args, 13);
  Numbers n;
  ctx.integers(args, 1, n.self, 3);
  ctx.integers(args, 5, n.other, 3);
  ctx.integers(args, 8, n.output, 5);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_numbers(ctx, n));
  Pairs pairs;
  HIL_TRY(pair_up(ctx, self, other, out, &pairs));

  const Addition add = {{n.self[0], n.self[1], n.self[2]},
                        {n.other[0], n.other[1], n.other[2]},
                        {&n.output[1], &n.output[2], 0, n.output[0], n.output[3], n.output[4]}};
  for (size_t r = 0; r < pairs.rows; ++r) {
    const int8_t* x = pairs.a + r * pairs.a_step;
    const int8_t* y = pairs.b + r * pairs.b_step;
    int8_t* target = pairs.out + r * pairs.row;
#if defined(__ARM_FEATURE_MVE)
    if (add_row_helium(add, x, y, target, pairs.row)) continue;
#endif
    add_row(add, x, y, target, pairs.row);
  }
  return Error::Ok;
}
HIL_OPERATOR("cortex_m::quantized_add.out", op_quantized_add);

}  // namespace hil
