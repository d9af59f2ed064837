// int8 of floats and floats of int8, per tensor, four lanes at a time.
#pragma once

#if defined(__ARM_FEATURE_MVE)

#include <arm_mve.h>

#include "kernels/quantize_scalar.h"

namespace hil::helium {

/// Integers after the rounding: saturation keeps what the clamp would. `Fused`: as
/// Quantizer::fused; what is beyond 2^21 steps is brought there first, and is out of bounds still.
template <bool Fused>
inline void quantize_row(const float* in, int8_t* out, size_t count, const Quantizer& quantizer) {
  constexpr float kWhole = Quantizer::kWhole, kReach = 2097152.0f;
  const int32x4_t zero = vdupq_n_s32(quantizer.zero_point);
  const int32x4_t low = vdupq_n_s32(quantizer.min), high = vdupq_n_s32(quantizer.max);
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(count - i);
    const float32x4_t value = vldrwq_z_f32(in + i, lanes);
    float32x4_t product, scaled;
    if constexpr (Fused) {
      product = vfmaq_n_f32(vdupq_n_f32(kWhole), value, quantizer.inverse_scale);
      const float32x4_t raised = vmaxnmq_f32(product, vdupq_n_f32(kWhole - kReach));
      scaled = vsubq_n_f32(vminnmq_f32(raised, vdupq_n_f32(kWhole + kReach)), kWhole);
    } else {
      product = scaled = vmulq_n_f32(value, quantizer.inverse_scale);
    }
    const int32x4_t shifted = vqaddq_s32(vcvtnq_s32_f32(scaled), zero);
    const int32x4_t bounded = vminq_s32(vmaxq_s32(shifted, low), high);
    const mve_pred16_t is_number = vcmpeqq_f32(product, product);
    vstrbq_p_s32(out + i, vpselq_s32(bounded, vdupq_n_s32(0), is_number), lanes);
  }
}

/// The first `whole` of `count` elements are fused.
inline void quantize(const float* in, int8_t* out, size_t whole, size_t count,
                     const Quantizer& quantizer) {
  if constexpr (kFusesRows) quantize_row<true>(in, out, whole, quantizer);
  quantize_row<false>(in + whole, out + whole, count - whole, quantizer);
}

inline void dequantize(const int8_t* in, float* out, size_t count, float scale,
                       int32_t zero_point) {
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(count - i);
    const int32x4_t shifted = vsubq_n_s32(vldrbq_z_s32(in + i, lanes), zero_point);
    vstrwq_p_f32(out + i, vmulq_n_f32(vcvtq_f32_s32(shifted), scale), lanes);
  }
}

}  // namespace hil::helium

#endif
