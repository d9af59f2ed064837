// The element types that quantised tensors may have.
#pragma once

#include "kernels/checks.h"

namespace hil {

struct IntegerRange {
  int32_t low, high;
};

constexpr IntegerRange integer_range(ScalarType type) {
  switch (type) {
    case ScalarType::Byte:
      return {0, UINT8_MAX};
    case ScalarType::Char:
      return {INT8_MIN, INT8_MAX};
    case ScalarType::Short:
      return {INT16_MIN, INT16_MAX};
    case ScalarType::UInt16:
      return {0, UINT16_MAX};
    case ScalarType::Int:
      return {INT32_MIN, INT32_MAX};
    default:
      return {0, 0};
  }
}

/// A dtype argument that names one of these types.
inline Error check_integer_type(KernelContext& ctx, int32_t dtype, ScalarType* type) {
  *type = static_cast<ScalarType>(dtype);
  if (static_cast<int32_t>(*type) == dtype && integer_range(*type).high != 0) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "dtype %ld is not an integer type of at most 32 bits",
                  static_cast<long>(dtype));
}

}  // namespace hil
