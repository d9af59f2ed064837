// cortex_m::quantize_per_tensor.out(input, scale, zero_point, quant_min, quant_max, dtype, out)
//
// Definition: torch.ops.quantized_decomposed.quantize_per_tensor, in float32:
// clamp(round_half_even(input * float(1 / scale)) + zero_point).
#include <cmath>

#include "kernels/checks.h"
#include "kernels/layout.h"
#include "kernels/operators.h"

namespace hil {

namespace {

struct Quantizer {
  float inverse_scale;
  int32_t zero_point, min, max;

  int32_t operator()(float value) const {
    const float rounded = std::nearbyint(value * inverse_scale) + static_cast<float>(zero_point);
    if (rounded != rounded) return 0;  // what the definition's conversion gives for NaN
    const float low = static_cast<float>(min), high = static_cast<float>(max);
    const float raised = rounded < low ? low : rounded;
    return static_cast<int32_t>(raised > high ? high : raised);
  }
};

template <typename T>
void quantize(const float* in, T* out, size_t count, const Quantizer& quantizer) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<T>(quantizer(in[i]));
}

#if defined(__ARM_FEATURE_MVE)

/// Integers after the rounding: saturation keeps what the clamp would.
void quantize(const float* in, int8_t* out, size_t count, const Quantizer& quantizer) {
  const int32x4_t zero = vdupq_n_s32(quantizer.zero_point);
  const int32x4_t low = vdupq_n_s32(quantizer.min), high = vdupq_n_s32(quantizer.max);
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(count - i);
    const float32x4_t scaled = vmulq_n_f32(vldrwq_z_f32(in + i, lanes), quantizer.inverse_scale);
    const int32x4_t shifted = vqaddq_s32(vcvtnq_s32_f32(scaled), zero);
    const int32x4_t bounded = vminq_s32(vmaxq_s32(shifted, low), high);
    const mve_pred16_t is_number = vcmpeqq_f32(scaled, scaled);
    vstrbq_p_s32(out + i, vpselq_s32(bounded, vdupq_n_s32(0), is_number), lanes);
  }
}

#endif

}  // namespace

Error op_quantize_per_tensor(KernelContext& ctx, Args args) {
  const Tensor& input = ctx.tensor(args, 0);
  const double scale = ctx.number(args, 1);
  int32_t numbers[4];
  ctx.integers(args, 2, numbers, 4);
  const int32_t zero_point = numbers[0], quant_min = numbers[1], quant_max = numbers[2];
  const int32_t dtype = numbers[3];
  Tensor& out = ctx.tensor(args, 6);
  if (!ctx.ok()) return ctx.argument_error();

  HIL_TRY(check_tensor(ctx, "input", input, ScalarType::Float));
  const ScalarType type = static_cast<ScalarType>(dtype);
  const bool is_byte = type == ScalarType::Char;
  if (!is_byte && type != ScalarType::Short) {
    return ctx.fail(Error::InvalidArgument, "dtype %ld is neither int8 nor int16",
                    static_cast<long>(dtype));
  }
  HIL_TRY(check_tensor(ctx, "out", out, type));
  const int32_t low = is_byte ? INT8_MIN : INT16_MIN, high = is_byte ? INT8_MAX : INT16_MAX;
  HIL_TRY(check_range(ctx, "zero point", zero_point, low, high));
  HIL_TRY(check_range(ctx, "quant_min", quant_min, low, high));
  HIL_TRY(check_range(ctx, "quant_max", quant_max, low, high));
  if (!(scale > 0)) return ctx.fail(Error::InvalidArgument, "scale is not positive");
  if (!same_layout(input, out)) {
    return ctx.fail(Error::InvalidArgument, "input and out differ in shape or dim order");
  }
  const Quantizer quantizer = {static_cast<float>(1.0 / scale), zero_point, quant_min,
                               quant_max};
  if (is_byte) {
    quantize(input.as<float>(), out.as<int8_t>(), out.numel, quantizer);
  } else {
    quantize(input.as<float>(), out.as<int16_t>(), out.numel, quantizer);
  }
  return Error::Ok;
}

}  // namespace hil
