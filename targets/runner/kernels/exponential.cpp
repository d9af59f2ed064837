#include "kernels/exponential.h"

#include <cmath>

namespace hil {

float exponential(float x) {
  using namespace exponential_series;
  const float bounded = x < kLowestExponent ? kLowestExponent : x;
  const float n = (bounded * kLog2E + kRounder) - kRounder;
  const float r = (bounded - n * kLn2High) - n * kLn2Low;
  float power = kSeries[0];
  for (size_t i = 1; i < 8; ++i) power = power * r + kSeries[i];
  return std::ldexp(power, static_cast<int>(n));
}

float decay(float x) {
  if (x < kLowestExponent) return 0.0f;
  return x <= 0.0f ? exponential(x) : x;  // the rest is NaN
}

}  // namespace hil
