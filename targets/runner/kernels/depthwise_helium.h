// Depthwise convolution on Helium: several channels at a time.
#pragma once

#if defined(__ARM_FEATURE_MVE)

#include <arm_mve.h>

#include "kernels/depthwise_packed.h"
#include "kernels/requantize_helium.h"

namespace hil::helium {

/// Four channels at a time in 32-bit lanes: any kernel, dilation or batch, no scratch.
template <Rounding R>
void depthwise_lanes(const Depthwise& d) {
  const size_t channels = d.window.channels_out;
  each_position(d, [&](int32_t y, int32_t x, const int8_t* image, int8_t* out) {
    for (size_t n = 0; n < channels; n += 4) {
      const mve_pred16_t lanes = vctp32q(channels - n);
      int32x4_t acc = d.bias == nullptr ? vdupq_n_s32(0) : vldrwq_z_s32(d.bias + n, lanes);
      each_tap(d, image, y, x, [&](const int8_t* pixel, const int8_t* weights) {
        const int32x4_t values = vaddq_n_s32(vldrbq_z_s32(pixel + n, lanes), d.input_offset);
        acc = vaddq_s32(acc, vmulq_s32(values, vldrbq_z_s32(weights + n, lanes)));
      });
      const int32x4_t bytes = to_output<R>(acc, load_multipliers(d.stage, n, lanes),
                                           load_shifts(d.stage, n, lanes), d.stage.offset,
                                           vdupq_n_s32(d.stage.min), vdupq_n_s32(d.stage.max));
      vstrbq_p_s32(out + n, bytes, lanes);
    }
  });
}

/// Several channels at a time; false when these sequences do not suit.
inline bool convolve_channels(const Depthwise& d) {
  if (d.multiplier() != 1) return false;
  const Rounding rounding = rounding_for(d.stage, d.window.channels_out);
  if (rounding == Rounding::Exact) {
    depthwise_lanes<Rounding::Exact>(d);
  } else if (!can_pack(d)) {
    depthwise_lanes<Rounding::Away>(d);  // right for rectified results, too
  } else {
    depthwise_packed(d, rounding);
  }
  return true;
}

}  // namespace hil::helium

#endif
