// One pixel of cortex_m::quantized_avg_pool2d, by the arithmetic that the build follows.
#pragma once

#include <cmath>

#include "kernels/pooling_patch.h"

namespace hil {

/// CMSIS-NN's (arm_avgpool_s8): the integer sum over the number of elements, half away from zero.
struct IntegerAverage {
  using Sum = int32_t;

  static Sum term(int8_t value) { return value; }
  static int8_t result(Sum sum, int32_t count) {
    if (count == 0) return 0;  // a window in the padding has no average
    const int32_t half = count / 2;
    return static_cast<int8_t>((sum > 0 ? sum + half : sum - half) / count);
  }
};

/// Python's: dequantised, summed and divided in float32, half to even.
struct FloatAverage {
  using Sum = float;

  float scale;
  int32_t zero_point;

  Sum term(int8_t value) const { return static_cast<float>(value - zero_point) * scale; }
  int8_t result(Sum sum, int32_t count) const {
    const float value = std::nearbyint(sum / static_cast<float>(count) / scale) +
                        static_cast<float>(zero_point);
    const float raised = value < -128.0f ? -128.0f : value;
    return static_cast<int8_t>(raised > 127.0f ? 127.0f : raised);
  }
};

namespace scalar {

/// From channel `first` on.
template <typename Average>
inline void average_from(const Average& a, const Patch& patch, size_t first, size_t channels,
                         int8_t* out) {
  for (size_t c = first; c < channels; ++c) {
    typename Average::Sum sum = 0;
    for (int32_t y = 0; y < patch.rows; ++y) {
      const int8_t* in = patch.first + y * patch.row_step + c;
      for (int32_t x = 0; x < patch.columns; ++x, in += patch.pixel_step) sum += a.term(*in);
    }
    out[c] = a.result(sum, patch.rows * patch.columns);
  }
}

template <typename Average>
inline void average(const Average& a, const Patch& patch, size_t channels, int8_t* out) {
  average_from(a, patch, 0, channels, out);
}

}  // namespace scalar

}  // namespace hil
