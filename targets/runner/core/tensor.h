// A tensor as the kernels see it: static shape, dim order, planned or constant storage.
#pragma once

#include "core/span.h"

namespace hil {

/// Element types by their serialized value (ExecuTorch schema/scalar_type.fbs).
enum class ScalarType : int8_t {
  Byte = 0,
  Char = 1,
  Short = 2,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  Bool = 11,
  BFloat16 = 15,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
};

/// Bytes of one element; 0 for a type this runner does not know.
constexpr size_t element_size(ScalarType type) {
  switch (type) {
    case ScalarType::Byte:
    case ScalarType::Char:
    case ScalarType::Bool:
      return 1;
    case ScalarType::Short:
    case ScalarType::Half:
    case ScalarType::BFloat16:
    case ScalarType::UInt16:
      return 2;
    case ScalarType::Int:
    case ScalarType::Float:
    case ScalarType::UInt32:
      return 4;
    case ScalarType::Long:
    case ScalarType::Double:
    case ScalarType::UInt64:
      return 8;
  }
  return 0;
}

constexpr size_t kMaxRank = 8;

/// `sizes[i]` is the logical extent of dimension i (NCHW for an image);
/// `dim_order` lists the dimensions from outermost to innermost in memory, so
/// {0, 2, 3, 1} is a channels-last image. Storage is dense. `data` may be null
/// until an input or an aliased view is bound; `nbytes` is always the full size.
struct Tensor {
  ScalarType type = ScalarType::Byte;
  uint8_t rank = 0;
  bool constant = false;
  const int32_t* sizes = nullptr;      // rank elements, all >= 0
  const uint8_t* dim_order = nullptr;  // rank elements, a permutation
  uint8_t* data = nullptr;
  size_t numel = 0;
  size_t nbytes = 0;

  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  int32_t size(size_t dim) const { return dim < rank ? sizes[dim] : 1; }
};

/// True when memory order is the logical order (ignoring dimensions of extent 1).
bool is_contiguous(const Tensor& t);
/// True for a rank-4 tensor whose channels are innermost ({0, 2, 3, 1}, ignoring extents of 1).
bool is_channels_last(const Tensor& t);
/// Same type, rank and sizes.
bool same_shape(const Tensor& a, const Tensor& b);

}  // namespace hil
