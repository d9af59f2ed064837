// int8 of floats and floats of int8, per tensor, four lanes at a time.
#pragma once

#if defined(__ARM_FEATURE_MVE)

#include <arm_mve.h>

#include "kernels/quantize_scalar.h"

namespace hil::helium {

/// Integers after the rounding: saturation keeps what the clamp would.
inline void quantize_plain(const float* in, int8_t* out, size_t count, const Quantizer& quantizer) {
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

/// Quantizer::fused of four lanes, `count` being a multiple of four. The sums are bounded as the
/// numbers about kWhole that they are, of which each has the bits of the one before and one more.
inline void quantize_fused(const float* in, int8_t* out, size_t count, const Quantizer& quantizer) {
  constexpr float kWhole = Quantizer::kWhole;
  constexpr int32_t kWholeBits = 0x4B400000;
  const int32_t zero_point = quantizer.zero_point;
  const float32x4_t whole = vdupq_n_f32(kWhole);
  const float32x4_t low = vdupq_n_f32(kWhole + static_cast<float>(quantizer.min - zero_point));
  const float32x4_t high = vdupq_n_f32(kWhole + static_cast<float>(quantizer.max - zero_point));
  for (size_t i = 0; i < count; i += 4) {
    const float32x4_t sum = vfmaq_n_f32(whole, vldrwq_f32(in + i), quantizer.inverse_scale);
    const float32x4_t bounded = vminnmq_f32(vmaxnmq_f32(sum, low), high);
    const int32x4_t bytes = vsubq_n_s32(vreinterpretq_s32_f32(bounded), kWholeBits - zero_point);
    vstrbq_s32(out + i, vpselq_s32(bytes, vdupq_n_s32(0), vcmpeqq_f32(sum, sum)));
  }
}

/// The first `whole` of `count` elements are fused.
inline void quantize(const float* in, int8_t* out, size_t whole, size_t count,
                     const Quantizer& quantizer) {
  if constexpr (kFusesRows) quantize_fused(in, out, whole, quantizer);
  quantize_plain(in + whole, out + whole, count - whole, quantizer);
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
