#include "kernels/portable/readers.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace hil {

namespace {

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

template <typename E>
constexpr bool kIsFloat = kIsShort<E> || std::is_floating_point<E>::value;

// Functions of their own: a reader and a writer of each type call them.

/// What has no 64-bit value becomes the lowest one.
[[gnu::noinline]] int64_t to_whole(double value) {
  const bool fits = value >= -0x1p63 && value < 0x1p63;
  return fits ? static_cast<int64_t>(value) : INT64_MIN;
}

/// The same of 32 bits.
[[gnu::noinline]] int32_t to_int(double value) {
  return value > -0x1p31 - 1.0 && value < 0x1p31 ? static_cast<int32_t>(value) : INT32_MIN;
}

/// A float as an integer type. C++ leaves open what has no value there: the same as on an x86.
template <typename E>
E whole_of(double value) {
  if constexpr (sizeof(E) == sizeof(int64_t)) {
    return static_cast<E>(to_whole(value));
  } else {
    return static_cast<E>(to_int(value));
  }
}

template <typename T, typename E>
T read(const uint8_t* at) {
  if constexpr (std::is_same<E, bool>::value) {
    return static_cast<T>(*at != 0);  // a file's byte need not be 0 or 1
  } else if constexpr (kIsFloat<E>) {
    const E element = *reinterpret_cast<const E*>(at);
    const Wide<E> value = static_cast<Wide<E>>(element);
    if constexpr (std::is_same<T, bool>::value) {
      return value != 0;
    } else if constexpr (std::is_same<T, int64_t>::value) {
      return to_whole(static_cast<double>(value));
    } else {
      return static_cast<T>(value);
    }
  } else {
    return static_cast<T>(*reinterpret_cast<const E*>(at));
  }
}

template <typename T, typename E>
void write(uint8_t* at, T value) {
  E* const element = reinterpret_cast<E*>(at);
  if constexpr (kIsShort<E>) {
    *element = E(static_cast<float>(value));
  } else if constexpr (std::is_same<E, bool>::value) {
    *at = value != 0 ? 1 : 0;
  } else if constexpr (std::is_integral<E>::value && std::is_floating_point<T>::value) {
    *element = whole_of<E>(static_cast<double>(value));
  } else {
    *element = static_cast<E>(value);
  }
}

}  // namespace

float from_half(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00) return float_of(sign | 0x7f800000u | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x0400) return float_of(sign | (magnitude + 0x1c000u) << 13);
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return sign != 0 ? -value : value;
}

uint16_t to_half(float value) {
  const uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000u) {
    // The spacing of floats here is that of subnormal halves: the addition rounds to even.
    const uint32_t shifted = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
    return static_cast<uint16_t>(sign | shifted);
  }
  magnitude += 0xfffu + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | ((magnitude >> 13) - 0x1c000u));
}

float from_bfloat16(uint16_t bits) { return float_of(static_cast<uint32_t>(bits) << 16); }

uint16_t to_bfloat16(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

// clang-format off
#define HIL_FOR_EACH_TYPE(ROW)                                                     \
  ROW(Byte, uint8_t) ROW(Char, int8_t) ROW(Short, int16_t) ROW(Int, int32_t)       \
  ROW(Long, int64_t) ROW(Half, Half) ROW(Float, float) ROW(Double, double)    \
  ROW(Bool, bool) ROW(BFloat16, BFloat16)
// clang-format on

template <typename T>
Reader<T> reader_of(ScalarType type) {
  switch (type) {
#define HIL_ROW(NAME, E) \
  case ScalarType::NAME: \
    return read<T, E>;
    HIL_FOR_EACH_TYPE(HIL_ROW)
#undef HIL_ROW
    default:
      return nullptr;
  }
}

template <typename T>
Writer<T> writer_of(ScalarType type) {
  switch (type) {
#define HIL_ROW(NAME, E) \
  case ScalarType::NAME: \
    return write<T, E>;
    HIL_FOR_EACH_TYPE(HIL_ROW)
#undef HIL_ROW
    default:
      return nullptr;
  }
}

template Reader<bool> reader_of<bool>(ScalarType);
template Reader<int64_t> reader_of<int64_t>(ScalarType);
template Reader<float> reader_of<float>(ScalarType);
template Reader<double> reader_of<double>(ScalarType);
template Writer<bool> writer_of<bool>(ScalarType);
template Writer<int64_t> writer_of<int64_t>(ScalarType);
template Writer<float> writer_of<float>(ScalarType);
template Writer<double> writer_of<double>(ScalarType);

}  // namespace hil
