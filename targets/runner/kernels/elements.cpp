#include "kernels/elements.h"

namespace hil {

namespace {

template <typename T>
Scalar real(const void* at) {
  return {true, static_cast<double>(*static_cast<const T*>(at)), 0};
}

template <typename T>
Scalar whole(const void* at) {
  return {false, 0.0, static_cast<int64_t>(*static_cast<const T*>(at))};
}

/// What has no 64-bit value becomes the lowest one.
int64_t to_whole(const Scalar& value) {
  if (!value.is_real) return value.whole;
  const bool fits = value.real >= -0x1p63 && value.real < 0x1p63;
  return fits ? static_cast<int64_t>(value.real) : INT64_MIN;
}

void store_float(const Scalar& value, void* at) { *static_cast<float*>(at) = value.as_float(); }

void store_double(const Scalar& value, void* at) {
  *static_cast<double*>(at) = value.is_real ? value.real : static_cast<double>(value.whole);
}

void store_bool(const Scalar& value, void* at) {
  *static_cast<uint8_t*>(at) = value.is_real ? value.real != 0.0 : value.whole != 0;
}

template <typename T>
void store_whole(const Scalar& value, void* at) {
  *static_cast<T*>(at) = static_cast<T>(to_whole(value));
}

}  // namespace

/// One rounding from 64 bits to float by way of double: bits that double may have to drop are
/// gathered in one that it keeps. The direct conversion would link a software floating point.
float Scalar::as_float() const {
  if (is_real) return static_cast<float>(real);
  constexpr int64_t kDropped = 0x7ff, kKept = 0x400;
  const bool wide = whole > (int64_t{1} << 53) || whole < -(int64_t{1} << 53);
  const int64_t sticky = (whole & kDropped) != 0 ? kKept : 0;
  return static_cast<float>(static_cast<double>(wide ? (whole & ~kDropped) | sticky : whole));
}

Load load_for(ScalarType type) {
  switch (type) {
    case ScalarType::Float:
      return real<float>;
    case ScalarType::Double:
      return real<double>;
    case ScalarType::Bool:
    case ScalarType::Byte:
      return whole<uint8_t>;
    case ScalarType::Char:
      return whole<int8_t>;
    case ScalarType::Short:
      return whole<int16_t>;
    case ScalarType::UInt16:
      return whole<uint16_t>;
    case ScalarType::Int:
      return whole<int32_t>;
    case ScalarType::Long:
      return whole<int64_t>;
    default:
      return nullptr;
  }
}

Store store_for(ScalarType type) {
  switch (type) {
    case ScalarType::Float:
      return store_float;
    case ScalarType::Double:
      return store_double;
    case ScalarType::Bool:
      return store_bool;
    case ScalarType::Byte:
    case ScalarType::Char:
      return store_whole<int8_t>;
    case ScalarType::Short:
    case ScalarType::UInt16:
      return store_whole<int16_t>;
    case ScalarType::Int:
      return store_whole<int32_t>;
    case ScalarType::Long:
      return store_whole<int64_t>;
    default:
      return nullptr;
  }
}

}  // namespace hil
