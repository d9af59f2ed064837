// One softmax of cortex_m::softmax. The arithmetic is the same on every path, lane by lane, so that
// all builds give the same bytes.
#pragma once

#include <cmath>

#include "kernels/exponential.h"

namespace hil {

constexpr int32_t kSoftmaxZeroPoint = -128;
constexpr size_t kSoftmaxLanes = 4;  // partial sums of the denominator

struct Softmax {
  float scale;
  int32_t zero_point;
  size_t count, step;

  float dequantize(int8_t value) const { return static_cast<float>(value - zero_point) * scale; }
};

inline int8_t to_probability(float exponential, float inverse_sum) {
  const float value = std::nearbyint(exponential * inverse_sum * 256.0f) + kSoftmaxZeroPoint;
  return static_cast<int8_t>(value > 127.0f ? 127.0f : value);
}

inline float combine(const float sums[kSoftmaxLanes]) {
  return 1.0f / ((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

namespace scalar {

/// Elements `step` apart.
inline void softmax(const Softmax& s, const int8_t* in, int8_t* out) {
  int8_t most = in[0];
  for (size_t i = 0; i < s.count; ++i) most = in[i * s.step] > most ? in[i * s.step] : most;
  const float top = s.dequantize(most);
  float sums[kSoftmaxLanes] = {};
  for (size_t i = 0; i < s.count; ++i) {
    sums[i % kSoftmaxLanes] += exponential(s.dequantize(in[i * s.step]) - top);
  }
  const float inverse = combine(sums);
  for (size_t i = 0; i < s.count; ++i) {
    out[i * s.step] = to_probability(exponential(s.dequantize(in[i * s.step]) - top), inverse);
  }
}

}  // namespace scalar

}  // namespace hil
