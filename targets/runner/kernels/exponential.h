// exp(x) for x <= 0, the same bits in every build.
//
// exp(x) = 2^n * exp(r), r = x - n * ln 2 with ln 2 in two parts, |r| <= ln(2) / 2, and the
// Taylor series of exp(r) to r^7 (error below 1e-8).
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#endif

namespace hil {

constexpr float kLowestExponent = -87.0f;  // exp is a normal float down to here, and stays so below

namespace exponential_series {

constexpr float kLog2E = 1.44269504f;
constexpr float kLn2High = 0.693359375f;
constexpr float kLn2Low = -2.12194440e-4f;
constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
constexpr float kSeries[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24,
                             1.0f / 6,    0.5f,       1.0f,       1.0f};

}  // namespace exponential_series

/// x is a number.
float exponential(float x);

#if defined(__ARM_FEATURE_MVE)

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

#endif

}  // namespace hil
