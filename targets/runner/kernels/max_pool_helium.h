// One pixel of cortex_m::quantized_max_pool2d, 16 channels at a time.
#pragma once

#if defined(__ARM_FEATURE_MVE)

#include <arm_mve.h>

#include "kernels/pooling_patch.h"

namespace hil::helium {

inline void largest(const Patch& patch, size_t channels, int8_t min, int8_t max, int8_t* out) {
  for (size_t c = 0; c < channels; c += 16) {
    const mve_pred16_t lanes = vctp8q(channels - c);
    int8x16_t most = vdupq_n_s8(INT8_MIN);
    for (int32_t y = 0; y < patch.rows; ++y) {
      const int8_t* in = patch.first + y * patch.row_step + c;
      for (int32_t x = 0; x < patch.columns; ++x, in += patch.pixel_step) {
        most = vmaxq_s8(most, vldrbq_z_s8(in, lanes));
      }
    }
    most = vminq_s8(vmaxq_s8(most, vdupq_n_s8(min)), vdupq_n_s8(max));
    vstrbq_p_s8(out + c, most, lanes);
  }
}

}  // namespace hil::helium

#endif
