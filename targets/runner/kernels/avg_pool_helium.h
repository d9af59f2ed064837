// One pixel of cortex_m::quantized_avg_pool2d, four channels at a time.
#pragma once

#if defined(__ARM_FEATURE_MVE)

#include <arm_mve.h>

#include "kernels/avg_pool_scalar.h"

namespace hil::helium {

inline void average(const Averaging& a, const Patch& patch, size_t channels, int8_t* out) {
  const float count = static_cast<float>(patch.rows * patch.columns);
  size_t c = 0;
  for (; c + 4 <= channels; c += 4) {
    float32x4_t sum = vdupq_n_f32(0.0f);
    for (int32_t y = 0; y < patch.rows; ++y) {
      const int8_t* in = patch.first + y * patch.row_step + c;
      for (int32_t x = 0; x < patch.columns; ++x, in += patch.pixel_step) {
        const int32x4_t centred = vsubq_n_s32(vldrbq_s32(in), a.zero_point);
        sum = vaddq_f32(sum, vmulq_n_f32(vcvtq_f32_s32(centred), a.scale));
      }
    }
    for (int lane = 0; lane < 4; ++lane) out[c + lane] = a.quantize(sum[lane], count);
  }
  scalar::average_from(a, patch, c, channels, out);
}

}  // namespace hil::helium

#endif
