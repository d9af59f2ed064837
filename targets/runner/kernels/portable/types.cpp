#include "kernels/portable/types.h"

namespace hil {

namespace {

/// Floats above integers above bool, and wider above narrower.
int rank_of(ScalarType type) {
  switch (type) {
    case ScalarType::Bool:
      return 0;
    case ScalarType::Byte:
    case ScalarType::Char:
      return 1;
    case ScalarType::Short:
      return 2;
    case ScalarType::Int:
      return 3;
    case ScalarType::Long:
      return 4;
    case ScalarType::Half:
    case ScalarType::BFloat16:
      return 5;
    case ScalarType::Float:
      return 6;
    default:
      return 7;
  }
}

}  // namespace

ScalarType promoted(ScalarType a, ScalarType b) {
  if (a == b) return a;
  const int first = rank_of(a), second = rank_of(b);
  if (first != second) return first > second ? a : b;
  // Neither of these two holds the other's values.
  return is_float(a) ? ScalarType::Float : ScalarType::Short;
}

bool can_cast(ScalarType from, ScalarType to) {
  return !(is_float(from) && is_whole(to)) && (is_bool(from) || !is_bool(to));
}

}  // namespace hil
