// Single elements of any type, for what is not worth a loop per type.
#pragma once

#include "core/tensor.h"

namespace hil {

/// A value of any element type; integers keep all their bits.
struct Scalar {
  bool is_real;
  double real;
  int64_t whole;

  static Scalar of(int32_t value) { return {false, 0.0, value}; }
  float as_float() const;
};

using Load = Scalar (*)(const void* at);
using Store = void (*)(const Scalar& value, void* at);

/// Null for a type that is not known.
Load load_for(ScalarType type);

/// Converts as C++ does: towards zero, then modulo the type. Null for a type that is not known.
Store store_for(ScalarType type);

}  // namespace hil
