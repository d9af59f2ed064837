// Arithmetic of single elements in their own type, as ExecuTorch's kernels do it.
#pragma once

#include <type_traits>

#include "kernels/portable/arithmetic.h"
#include "kernels/portable/readers.h"

namespace hil {

/// Calls f with a zero of the element type, of kReals; an integer is any of the wider int64_t.
template <typename F>
void for_type(ScalarType type, F f) {
  if (is_float(type)) {
    for_float_type(type, f);
  } else if (type == ScalarType::Byte) {
    f(uint8_t{});
  } else if (type == ScalarType::Char) {
    f(int8_t{});
  } else if (type == ScalarType::Short) {
    f(int16_t{});
  } else if (type == ScalarType::Int) {
    f(int32_t{});
  } else {
    f(int64_t{});
  }
}

/// a * b + c as elements of type E have it: each operation is rounded, integers wrap.
template <typename E>
E times_plus(E a, E b, E c) {
  if constexpr (std::is_integral<E>::value) {
    return static_cast<E>(Plus()(Times()(int64_t{a}, int64_t{b}), int64_t{c}));
  } else {
    using W = Wide<E>;
    return static_cast<E>(static_cast<W>(c) + kept<E>(static_cast<W>(a) * static_cast<W>(b)));
  }
}

template <typename E>
E plus(E a, E b) {
  if constexpr (std::is_integral<E>::value) {
    return static_cast<E>(Plus()(int64_t{a}, int64_t{b}));
  } else {
    return static_cast<E>(static_cast<Wide<E>>(a) + static_cast<Wide<E>>(b));
  }
}

/// An element of any type, of kReals, as one of type E.
template <typename E>
E element_as(const Tensor& t, size_t i) {
  const uint8_t* at = t.data + i * element_size(t.type);
  if constexpr (std::is_integral<E>::value) {
    return static_cast<E>(reader_of<int64_t>(t.type)(at));
  } else {
    return static_cast<E>(reader_of<Wide<E>>(t.type)(at));
  }
}

}  // namespace hil
