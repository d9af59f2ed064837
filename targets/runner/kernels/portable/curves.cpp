#include "kernels/portable/curves.h"

#include <cmath>

#include "kernels/exponential.h"

namespace hil {

namespace {

// Up to here exp(x) - 1 is a series: beyond, the difference loses no more than two bits.
constexpr float kSeriesLimit = 0.35f;
// Taylor series of (exp(x) - 1) / x, highest power first; the next term is below 1e-9 at the limit.
constexpr float kLessOne[] = {1.0f / 40320, 1.0f / 5040, 1.0f / 720, 1.0f / 120,
                              1.0f / 24,    1.0f / 6,    0.5f,       1.0f};

constexpr double kLn2 = 0.693147180559945309, kRootOfHalf = 0.707106781186547524;
// Series of log((1 + s) / (1 - s)) / 2s in the square of s, which is at most 0.03: the next term is
// below 1e-12.
constexpr double kLogarithm[] = {1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0};

}  // namespace

float exponential_less_one(float x) {
  if (!(x > -kSeriesLimit)) return decay(x) - 1.0f;
  float sum = 0.0f;
  for (const float factor : kLessOne) sum = sum * x + factor;
  return sum * x;
}

double logarithm(float x) {
  int power;
  double part = std::frexp(x, &power);  // 0.5 to 1
  if (part < kRootOfHalf) part *= 2.0, --power;
  const double s = (part - 1.0) / (part + 1.0), square = s * s;
  double sum = 0.0;
  for (const double factor : kLogarithm) sum = sum * square + factor;
  return power * kLn2 + 2.0 * s * sum;
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
