// Arithmetic of 32 and 64 bits that wraps: a stream may ask for sums that need more.
#pragma once

#include <type_traits>

namespace hil::npu {

template <typename Value>
Value wrapped_sum(Value a, Value b) {
  using Unsigned = std::make_unsigned_t<Value>;
  return static_cast<Value>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
}

template <typename Value>
Value wrapped_difference(Value a, Value b) {
  using Unsigned = std::make_unsigned_t<Value>;
  return static_cast<Value>(static_cast<Unsigned>(a) - static_cast<Unsigned>(b));
}

template <typename Value>
Value wrapped_product(Value a, Value b) {
  using Unsigned = std::make_unsigned_t<Value>;
  return static_cast<Value>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
}

}  // namespace hil::npu
