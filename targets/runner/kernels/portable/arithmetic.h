// Functions of two values of the type that is computed in, as ExecuTorch defines them where C++
// leaves something open.
#pragma once

#include <cmath>
#include <cstdint>

namespace hil {

struct Plus {
  int64_t operator()(int64_t a, int64_t b) const {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  float operator()(float a, float b) const { return a + b; }
  double operator()(double a, double b) const { return a + b; }
};

struct Times {
  int64_t operator()(int64_t a, int64_t b) const {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
  float operator()(float a, float b) const { return a * b; }
  double operator()(double a, double b) const { return a * b; }
};

inline bool is_nan(bool) { return false; }
inline bool is_nan(int64_t) { return false; }
inline bool is_nan(float x) { return std::isnan(x); }
inline bool is_nan(double x) { return std::isnan(x); }

/// The larger one; a NaN is larger than all.
struct Larger {
  template <typename T>
  T operator()(T a, T b) const {
    return is_nan(a) || !(is_nan(b) || a < b) ? a : b;
  }
};

struct Smaller {
  template <typename T>
  T operator()(T a, T b) const {
    return is_nan(a) || !(is_nan(b) || b < a) ? a : b;
  }
};

/// Towards zero, modulo 64 bits.
inline int64_t divided(int64_t a, int64_t b) {
  return b == -1 ? static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(a)) : a / b;
}
inline int64_t remainder_of(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }

/// Towards minus infinity.
inline int64_t floor_divided(int64_t a, int64_t b) {
  const int64_t quotient = divided(a, b);
  return (a < 0) != (b < 0) && remainder_of(a, b) != 0 ? quotient - 1 : quotient;
}

template <typename T>
T floor_divided(T a, T b) {
  if (b == 0) return std::signbit(a) ? -static_cast<T>(INFINITY) : static_cast<T>(INFINITY);
  const T rest = std::fmod(a, b), quotient = (a - rest) / b;
  return rest != 0 && std::signbit(b) != std::signbit(rest) ? quotient - 1 : quotient;
}

/// ExecuTorch's remainder: of integers C's, of floats one with the divisor's sign, in float32.
inline int64_t signed_remainder(int64_t a, int64_t b) { return remainder_of(a, b); }

template <typename T>
T signed_remainder(T a, T b) {
  float rest = static_cast<float>(std::fmod(a, b));
  if ((a < 0) != (b < 0) && rest != 0.0f) rest = static_cast<float>(static_cast<T>(rest) + b);
  return static_cast<T>(rest);
}

}  // namespace hil
