#include "kernels/portable/curves.h"

#include "kernels/exponential.h"

namespace hil {

namespace {

// Up to here exp(x) - 1 is a series: beyond, the difference loses no more than two bits.
constexpr float kSeriesLimit = 0.35f;
// Taylor series of (exp(x) - 1) / x, highest power first; the next term is below 1e-9 at the limit.
constexpr float kLessOne[] = {1.0f / 40320, 1.0f / 5040, 1.0f / 720, 1.0f / 120,
                              1.0f / 24,    1.0f / 6,    0.5f,       1.0f};

/// exp() of what is at most 0 or NaN.
float decay(float x) {
  if (x < kLowestExponent) return 0.0f;
  return x <= 0.0f ? exponential(x) : x;  // the rest is NaN
}

}  // namespace

float exponential_less_one(float x) {
  if (!(x > -kSeriesLimit)) return decay(x) - 1.0f;
  float sum = 0.0f;
  for (const float factor : kLessOne) sum = sum * x + factor;
  return sum * x;
}

float sigmoid(float x) {
  if (x > 0.0f) return 1.0f / (1.0f + decay(-x));
  const float power = decay(x);
  return power / (1.0f + power);
}

float hyperbolic_tangent(float x) {
  // tanh(|x|) = -e / (2 + e) with e = exp(-2 |x|) - 1
  const float less_one = exponential_less_one(x > 0.0f ? -2.0f * x : 2.0f * x);
  const float size = -less_one / (2.0f + less_one);
  return x > 0.0f ? size : -size;
}

}  // namespace hil
