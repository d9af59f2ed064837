// Single elements of any type as values of the type that is computed in.
#pragma once

#include <type_traits>

#include "kernels/portable/types.h"

namespace hil {

/// The 16-bit formats: IEEE 754 binary16, and the upper half of a float32.
float from_half(uint16_t bits);
uint16_t to_half(float value);
float from_bfloat16(uint16_t bits);
uint16_t to_bfloat16(float value);

/// Elements of 16 bits: each operation is one of floats, rounded.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value) : bits(to_half(value)) {}
  operator float() const { return from_half(bits); }  // NOLINT(google-explicit-constructor)
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) : bits(to_bfloat16(value)) {}
  operator float() const { return from_bfloat16(bits); }  // NOLINT(google-explicit-constructor)
};

template <typename T>
using Reader = T (*)(const uint8_t* at);
template <typename T>
using Writer = void (*)(uint8_t* at, T value);

/// T is bool (not zero), int64_t (towards zero), float or double. Null for a type outside kAll.
template <typename T>
Reader<T> reader_of(ScalarType type);

/// Converts as C++ does: integers modulo the type, floats towards zero. Null outside kAll.
template <typename T>
Writer<T> writer_of(ScalarType type);

/// The value that is left when an integer result is stored as `type`, of kWholes or Bool.
inline int64_t wrapped(ScalarType type, int64_t value) {
  switch (type) {
    case ScalarType::Bool:
      return value != 0;
    case ScalarType::Byte:
      return static_cast<uint8_t>(value);
    case ScalarType::Char:
      return static_cast<int8_t>(value);
    case ScalarType::Short:
      return static_cast<int16_t>(value);
    case ScalarType::Int:
      return static_cast<int32_t>(value);
    default:
      return value;
  }
}

/// What a result is before it is stored: an integer has its own type's range.
template <typename T>
T wrapped(ScalarType, T value) {
  return value;
}

/// A result of floats as an element of type E keeps it: what 16 bits drop is dropped at once.
template <typename E>
constexpr bool kIsShort = std::is_same<E, Half>::value || std::is_same<E, BFloat16>::value;
/// What elements of a float type are computed in.
template <typename E>
using Wide = std::conditional_t<std::is_same<E, double>::value, double, float>;

template <typename E>
Wide<E> kept(Wide<E> value) {
  if constexpr (kIsShort<E>) return static_cast<float>(E(value));
  return value;
}

/// Calls f with a zero of the float type.
template <typename F>
void for_float_type(ScalarType type, F f) {
  if (type == ScalarType::Float) {
    f(float{});
  } else if (type == ScalarType::Double) {
    f(double{});
  } else if (type == ScalarType::Half) {
    f(Half());
  } else {
    f(BFloat16());
  }
}

}  // namespace hil
