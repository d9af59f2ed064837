// exponential() of four lanes, the same bits as of each alone.
#pragma once

#include <arm_mve.h>

#include "kernels/exponential.h"

namespace hil {

inline float32x4_t exponential(float32x4_t x) {
  using namespace exponential_series;
  const float32x4_t bounded = vmaxnmq_f32(x, vdupq_n_f32(kLowestExponent));
  const float32x4_t n = vsubq_n_f32(vaddq_n_f32(vmulq_n_f32(bounded, kLog2E), kRounder), kRounder);
  const float32x4_t r =
      vsubq_f32(vsubq_f32(bounded, vmulq_n_f32(n, kLn2High)), vmulq_n_f32(n, kLn2Low));
  float32x4_t power = vdupq_n_f32(kSeries[0]);
  for (size_t i = 1; i < 8; ++i) power = vaddq_n_f32(vmulq_f32(power, r), kSeries[i]);
  const int32x4_t exponent = vshlq_n_s32(vcvtq_s32_f32(n), 23);
  return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(power), exponent));
}

}  // namespace hil
