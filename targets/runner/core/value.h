// A value of the program's value table (ExecuTorch schema: EValue).
#pragma once

#include "core/tensor.h"

namespace hil {

struct Value;

enum class Tag : uint8_t {
  None,
  Int,
  Bool,
  Double,
  Tensor,
  String,
  IntList,
  DoubleList,
  BoolList,
  TensorList,
  OptionalTensorList,
};

/// Lists of ints and tensors refer to other values (the schema boxes them);
/// the loader has checked that each refers to a value of the right tag.
struct Value {
  Tag tag = Tag::None;
  union {
    int64_t as_int;
    bool as_bool;
    double as_double;
    Tensor tensor;
    Span<const char> string;
    Span<Value* const> list;  // IntList, TensorList, OptionalTensorList (null = None)
    Span<const double> doubles;
    Span<const uint8_t> bools;
  };
  Value() : as_int(0) {}
};

}  // namespace hil
