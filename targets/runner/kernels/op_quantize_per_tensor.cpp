// cortex_m::quantize_per_tensor.out(input, scale, zero_point, quant_min, quant_max, dtype, out)
// and quantized_decomposed::quantize_per_tensor.out, the same.
//
// Definition: torch.ops.quantized_decomposed.quantize_per_tensor, in float32:
// clamp(round_half_even(input * float(1 / scale)) + zero_point).
#include <cmath>

#include "kernels/elements.h"
#include "kernels/integers.h"
#include "kernels/layout.h"
#include "kernels/operator.h"

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
    return raised >= high ? max : static_cast<int32_t>(raised);  // 2^31 has no conversion
  }
};

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

#else

void quantize(const float* in, int8_t* out, size_t count, const Quantizer& quantizer) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<int8_t>(quantizer(in[i]));
}

#endif

void quantize(const float* in, Tensor& out, const Quantizer& quantizer) {
  if (out.type == ScalarType::Char) return quantize(in, out.as<int8_t>(), out.numel, quantizer);
  const Store store = store_for(out.type);
  const size_t size = element_size(out.type);
  for (size_t i = 0; i < out.numel; ++i) store(Scalar::of(quantizer(in[i])), out.data + i * size);
}

}  // namespace

Error op_quantize_per_tensor(KernelContext& ctx, Args args) {
  const Tensor& input = ctx.tensor(args, 0);
  const double scale = ctx.number(args, 1);
  int32_t numbers[4];
  ctx.integers(args, 2, numbers, 4);
  const int32_t zero_point = numbers[0], quant_min = numbers[1], quant_max = numbers[2];
  Tensor& out = ctx.tensor(args, 6);
  if (!ctx.ok()) return ctx.argument_error();

  ScalarType type;
  HIL_TRY(check_integer_type(ctx, numbers[3], &type));
  HIL_TRY(check_tensor(ctx, "input", input, ScalarType::Float));
  HIL_TRY(check_tensor(ctx, "out", out, type));
  const IntegerRange range = integer_range(type);
  HIL_TRY(check_range(ctx, "zero point", zero_point, range.low, range.high));
  HIL_TRY(check_range(ctx, "quant_min", quant_min, range.low, range.high));
  HIL_TRY(check_range(ctx, "quant_max", quant_max, range.low, range.high));
  if (!(scale > 0)) return ctx.fail(Error::InvalidArgument, "scale is not positive");
  if (!same_layout(input, out)) {
    return ctx.fail(Error::InvalidArgument, "input and out differ in shape or dim order");
  }
  quantize(input.as<float>(), out,
           {static_cast<float>(1.0 / scale), zero_point, quant_min, quant_max});
  return Error::Ok;
}
HIL_OPERATOR("cortex_m::quantize_per_tensor.out", op_quantize_per_tensor);
HIL_OPERATOR("quantized_decomposed::quantize_per_tensor.out", op_quantize_per_tensor);

}  // namespace hil
