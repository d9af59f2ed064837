// Sigmoid, tanh, logarithm and exp(x) - 1, the same bits in every build: newlib and glibc differ in
// theirs.
#pragma once

namespace hil {

/// 1 / (1 + exp(-x)). NaN stays NaN.
float sigmoid(float x);

float hyperbolic_tangent(float x);

/// exp(x) - 1 for x <= 0, also where the difference is small. NaN stays NaN.
float exponential_less_one(float x);

/// The natural logarithm of a positive number.
double logarithm(float x);

}  // namespace hil
