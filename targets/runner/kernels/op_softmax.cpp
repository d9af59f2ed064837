// cortex_m::softmax.out(input, dim, input_zero_point, output_zero_point,
//   input_multiplier, input_shift, diff_min, out)
//
// Definition, in float32: softmax of (input - zero_point) * scale, times 256,
// rounded half to even. The arithmetic below is the same on every path, lane by
// lane, so that all builds give the same bytes.
#include <cmath>

#include "kernels/checks.h"
#include "kernels/exponential.h"
#include "kernels/layout.h"
#include "kernels/operator.h"

namespace hil {

namespace {

constexpr int32_t kOutputZeroPoint = -128;
constexpr int kInputIntegerBits = 5;  // SOFTMAX_INPUT_INTEGER_BITS of operators.py
constexpr size_t kLanes = 4;          // partial sums of the denominator

struct Softmax {
  float scale;
  int32_t zero_point;
  size_t count, step;

  float dequantize(int8_t value) const { return static_cast<float>(value - zero_point) * scale; }
};

int8_t to_probability(float exponential, float inverse_sum) {
  const float value = std::nearbyint(exponential * inverse_sum * 256.0f) + kOutputZeroPoint;
  return static_cast<int8_t>(value > 127.0f ? 127.0f : value);
}

float combine(const float sums[kLanes]) {
  return 1.0f / ((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

void softmax_strided(const Softmax& s, const int8_t* in, int8_t* out) {
  int8_t most = in[0];
  for (size_t i = 0; i < s.count; ++i) most = in[i * s.step] > most ? in[i * s.step] : most;
  const float top = s.dequantize(most);
  float sums[kLanes] = {};
  for (size_t i = 0; i < s.count; ++i) {
    sums[i % kLanes] += exponential(s.dequantize(in[i * s.step]) - top);
  }
  const float inverse = combine(sums);
  for (size_t i = 0; i < s.count; ++i) {
    out[i * s.step] = to_probability(exponential(s.dequantize(in[i * s.step]) - top), inverse);
  }
}

#if defined(__ARM_FEATURE_MVE)

void softmax_row(const Softmax& s, const int8_t* in, int8_t* out) {
  int8_t most = INT8_MIN;
  for (size_t i = 0; i < s.count; i += 16) {
    const mve_pred16_t lanes = vctp8q(s.count - i);
    most = vmaxvq_p_s8(most, vldrbq_z_s8(in + i, lanes), lanes);
  }
  const float top = s.dequantize(most);
  const auto values = [&](size_t i, mve_pred16_t lanes) {
    const int32x4_t centred = vsubq_n_s32(vldrbq_z_s32(in + i, lanes), s.zero_point);
    return exponential(vsubq_n_f32(vmulq_n_f32(vcvtq_f32_s32(centred), s.scale), top));
  };
  float32x4_t sums = vdupq_n_f32(0.0f);
  for (size_t i = 0; i < s.count; i += kLanes) {
    const mve_pred16_t lanes = vctp32q(s.count - i);
    sums = vaddq_m_f32(sums, sums, values(i, lanes), lanes);
  }
  float partial[kLanes];
  vst1q_f32(partial, sums);
  const float inverse = combine(partial);
  for (size_t i = 0; i < s.count; i += kLanes) {
    const mve_pred16_t lanes = vctp32q(s.count - i);
    const float32x4_t scaled = vmulq_n_f32(vmulq_n_f32(values(i, lanes), inverse), 256.0f);
    const int32x4_t moved = vaddq_n_s32(vcvtnq_s32_f32(scaled), kOutputZeroPoint);
    vstrbq_p_s32(out + i, vminq_s32(moved, vdupq_n_s32(127)), lanes);
  }
}

#endif

void softmax(const Softmax& s, const int8_t* in, int8_t* out) {
#if defined(__ARM_FEATURE_MVE)
  if (s.step == 1) return softmax_row(s, in, out);
#endif
  softmax_strided(s, in, out);
}

}  // namespace

Error op_softmax(KernelContext& ctx, Args args) {
  const Tensor& input = ctx.tensor(args, 0);
  int32_t numbers[5];
  ctx.integers(args, 1, numbers, 5);
  const int32_t dim = numbers[0], zero_point = numbers[1], output_zero = numbers[2];
  const int32_t multiplier = numbers[3], shift = numbers[4];
  Tensor& out = ctx.tensor(args, 7);
  if (!ctx.ok()) return ctx.argument_error();

  HIL_TRY(check_tensor(ctx, "input", input, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Char));
  if (!same_layout(input, out)) {
    return ctx.fail(Error::InvalidArgument, "input and out differ in shape or dim order");
  }
  size_t axis;
  HIL_TRY(check_dim(ctx, dim, input.rank, &axis));
  HIL_TRY(check_range(ctx, "zero point", zero_point, -128, 127));
  HIL_TRY(check_range(ctx, "output zero point", output_zero, kOutputZeroPoint, kOutputZeroPoint));
  HIL_TRY(check_range(ctx, "multiplier", multiplier, 1, INT32_MAX));
  HIL_TRY(check_shift(ctx, "shift", shift));
  if (out.numel == 0) return Error::Ok;

  const double scale =
      std::ldexp(static_cast<double>(multiplier), shift - 31 - (31 - kInputIntegerBits));
  const size_t count = static_cast<size_t>(input.sizes[axis]);
  const Softmax s = {static_cast<float>(scale), zero_point, count,
                     static_cast<size_t>(strides_of(input).step[axis])};
  const size_t block = s.count * s.step;
  for (size_t outer = 0; outer < out.numel; outer += block) {
    for (size_t inner = 0; inner < s.step; ++inner) {
      softmax(s, input.as<int8_t>() + outer + inner, out.as<int8_t>() + outer + inner);
    }
  }
  return Error::Ok;
}
HIL_OPERATOR("cortex_m::softmax.out", op_softmax);

}  // namespace hil
