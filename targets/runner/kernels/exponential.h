// exp(x) for x <= 0, the same bits in every build.
//
// exp(x) = 2^n * exp(r), r = x - n * ln 2 with ln 2 in two parts, |r| <= ln(2) / 2, and the
// Taylor series of exp(r) to r^7 (error below 1e-8).
#pragma once

#include <cstddef>
#include <cstdint>

namespace hil {

constexpr float kLowestExponent = -87.0f;  // exp is a normal float down to here, and stays so below

namespace exponential_series {

constexpr float kLog2E = 1.44269504f;
constexpr float kLn2High = 0.693359375f;
constexpr float kLn2Low = -2.12194440e-4f;
constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
constexpr float kSeries[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24,
                             1.0f / 6,    0.5f,       1.0f,       1.0f};

}  // namespace exponential_series

/// x is a number.
float exponential(float x);

/// exp() of what is at most 0, -infinity or NaN.
float decay(float x);

}  // namespace hil
