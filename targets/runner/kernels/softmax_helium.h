// One softmax of cortex_m::softmax, four lanes at a time.
#pragma once

#if defined(__ARM_FEATURE_MVE)

#include <arm_mve.h>

#include "kernels/exponential_helium.h"
#include "kernels/softmax_scalar.h"

namespace hil::helium {

/// Elements that lie side by side.
inline void softmax_row(const Softmax& s, const int8_t* in, int8_t* out) {
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
  for (size_t i = 0; i < s.count; i += kSoftmaxLanes) {
    const mve_pred16_t lanes = vctp32q(s.count - i);
    sums = vaddq_m_f32(sums, sums, values(i, lanes), lanes);
  }
  float partial[kSoftmaxLanes];
  vst1q_f32(partial, sums);
  const float inverse = combine(partial);
  for (size_t i = 0; i < s.count; i += kSoftmaxLanes) {
    const mve_pred16_t lanes = vctp32q(s.count - i);
    const float32x4_t scaled = vmulq_n_f32(vmulq_n_f32(values(i, lanes), inverse), 256.0f);
    const int32x4_t moved = vaddq_n_s32(vcvtnq_s32_f32(scaled), kSoftmaxZeroPoint);
    vstrbq_p_s32(out + i, vminq_s32(moved, vdupq_n_s32(127)), lanes);
  }
}

inline void softmax(const Softmax& s, const int8_t* in, int8_t* out) {
  if (s.step == 1) return softmax_row(s, in, out);
  scalar::softmax(s, in, out);
}

}  // namespace hil::helium

#endif
