// One pixel of cortex_m::quantized_max_pool2d.
#pragma once

#include "kernels/pooling_patch.h"
#include "kernels/requantize.h"

namespace hil::scalar {

inline int8_t largest_of(const Patch& patch, size_t channel) {
  int8_t most = INT8_MIN;
  for (int32_t y = 0; y < patch.rows; ++y) {
    const int8_t* in = patch.first + y * patch.row_step + channel;
    for (int32_t x = 0; x < patch.columns; ++x, in += patch.pixel_step) {
      most = *in > most ? *in : most;
    }
  }
  return most;
}

/// The largest value of each channel, clamped.
inline void largest(const Patch& patch, size_t channels, int8_t min, int8_t max, int8_t* out) {
  for (size_t c = 0; c < channels; ++c) {
    out[c] = static_cast<int8_t>(clamp(largest_of(patch, c), min, max));
  }
}

}  // namespace hil::scalar
