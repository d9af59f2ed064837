// One pixel of cortex_m::quantized_avg_pool2d, four channels at a time.
#pragma once

#if defined(__ARM_FEATURE_MVE)

#include <arm_mve.h>

#include "kernels/avg_pool_scalar.h"

namespace hil::helium {

inline int32x4_t no_sum(const IntegerAverage&) { return vdupq_n_s32(0); }
inline int32x4_t add_terms(const IntegerAverage&, int32x4_t sum, int32x4_t values) {
  return vaddq_s32(sum, values);
}

inline float32x4_t no_sum(const FloatAverage&) { return vdupq_n_f32(0.0f); }
inline float32x4_t add_terms(const FloatAverage& a, float32x4_t sum, int32x4_t values) {
  const int32x4_t centred = vsubq_n_s32(values, a.zero_point);
  return vaddq_f32(sum, vmulq_n_f32(vcvtq_f32_s32(centred), a.scale));
}

template <typename Average>
inline void average(const Average& a, const Patch& patch, size_t channels, int8_t* out) {
  size_t c = 0;
  for (; c + 4 <= channels; c += 4) {
    auto sum = no_sum(a);
    for (int32_t y = 0; y < patch.rows; ++y) {
      const int8_t* in = patch.first + y * patch.row_step + c;
      for (int32_t x = 0; x < patch.columns; ++x, in += patch.pixel_step) {
        sum = add_terms(a, sum, vldrbq_s32(in));
      }
    }
    for (int lane = 0; lane < 4; ++lane) {
      out[c + lane] = a.result(sum[lane], patch.rows * patch.columns);
    }
  }
  scalar::average_from(a, patch, c, channels, out);
}

}  // namespace hil::helium

#endif
