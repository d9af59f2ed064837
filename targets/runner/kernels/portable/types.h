// Sets of element types, and what two of them are computed in, as ExecuTorch's portable library
// defines it (runtime/core/exec_aten/util/scalar_type_util.h, v1.5.1).
#pragma once

#include "core/tensor.h"

namespace hil {

/// A set of element types, one bit each.
using TypeSet = uint32_t;

constexpr TypeSet only(ScalarType type) { return TypeSet{1} << static_cast<uint8_t>(type); }

constexpr TypeSet kWholes = only(ScalarType::Byte) | only(ScalarType::Char) |
                            only(ScalarType::Short) | only(ScalarType::Int) |
                            only(ScalarType::Long);
constexpr TypeSet kWideFloats = only(ScalarType::Float) | only(ScalarType::Double);
constexpr TypeSet kHalves = only(ScalarType::Half) | only(ScalarType::BFloat16);
constexpr TypeSet kFloats = kWideFloats | kHalves;
constexpr TypeSet kBool = only(ScalarType::Bool);
constexpr TypeSet kBoolOrByte = kBool | only(ScalarType::Byte);
constexpr TypeSet kReals = kWholes | kFloats;
constexpr TypeSet kAll = kReals | kBool;

constexpr bool is_in(ScalarType type, TypeSet set) { return (set & only(type)) != 0; }
constexpr bool is_float(ScalarType type) { return is_in(type, kFloats); }
constexpr bool is_whole(ScalarType type) { return is_in(type, kWholes); }
constexpr bool is_bool(ScalarType type) { return type == ScalarType::Bool; }

/// The type that holds the values of both; of kAll.
ScalarType promoted(ScalarType a, ScalarType b);

/// Whether a result of type `from` may be stored as `to`: no float as an integer, nothing but a
/// bool as a bool.
bool can_cast(ScalarType from, ScalarType to);

/// What values of a type are computed in: 16-bit floats in float, the others in themselves.
constexpr ScalarType computed_in(ScalarType type) {
  return is_in(type, kHalves) ? ScalarType::Float : type;
}

}  // namespace hil
