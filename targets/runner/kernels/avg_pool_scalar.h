// One pixel of cortex_m::quantized_avg_pool2d.
#pragma once

#include <cmath>

#include "kernels/pooling_patch.h"

namespace hil {

struct Averaging {
  float scale;
  int32_t zero_point;

  int8_t quantize(float sum, float count) const {
    const float value = std::nearbyint(sum / count / scale) + static_cast<float>(zero_point);
    const float raised = value < -128.0f ? -128.0f : value;
    return static_cast<int8_t>(raised > 127.0f ? 127.0f : raised);
  }
};

namespace scalar {

/// From channel `first` on.
inline void average_from(const Averaging& a, const Patch& patch, size_t first, size_t channels,
                         int8_t* out) {
  const float count = static_cast<float>(patch.rows * patch.columns);
  for (size_t c = first; c < channels; ++c) {
    float sum = 0.0f;
    for (int32_t y = 0; y < patch.rows; ++y) {
      const int8_t* in = patch.first + y * patch.row_step + c;
      for (int32_t x = 0; x < patch.columns; ++x, in += patch.pixel_step) {
        sum += static_cast<float>(*in - a.zero_point) * a.scale;
      }
    }
    out[c] = a.quantize(sum, count);
  }
}

inline void average(const Averaging& a, const Patch& patch, size_t channels, int8_t* out) {
  average_from(a, patch, 0, channels, out);
}

}  // namespace scalar

}  // namespace hil
