// What the kernels of the portable library ask of their arguments. They refuse what ExecuTorch's
// own refuse, with the same code, InvalidArgument.
#pragma once

#include <initializer_list>

#include "core/kernel.h"
#include "kernels/portable/readers.h"

namespace hil {

/// InvalidArgument, with what does not fit.
Error refuse(KernelContext& ctx, const char* what);

/// Leaves a kernel whose arguments do not meet a condition.
#define HIL_REQUIRE(condition, what)            \
  do {                                          \
    if (!(condition)) return refuse(ctx, what); \
  } while (false)

Error require_type(KernelContext& ctx, const Tensor& t, TypeSet allowed);

using Tensors = std::initializer_list<const Tensor*>;  // a null is passed over

Error require_same_type(KernelContext& ctx, Tensors tensors);

/// Whether the dimensions lie in memory as they are counted, whatever their extents.
bool is_plain(const Tensor& t);
/// Whether the channels of an image or a volume are innermost.
bool is_channels_inner(const Tensor& t);

inline bool is_plain_or_channels_inner(const Tensor& t) {
  return is_plain(t) || is_channels_inner(t);
}

/// All are plain, or all have the channels innermost.
Error require_same_order(KernelContext& ctx, Tensors tensors);
Error require_plain(KernelContext& ctx, const Tensor& t);
Error require_plain_or_channels_inner(KernelContext& ctx, const Tensor& t);

/// A shape that a result is to have.
struct Shape {
  int64_t sizes[kMaxRank] = {};
  size_t rank = 0;

  static Shape of(const Tensor& t);
  size_t numel() const;
  /// False when there would be too many dimensions.
  bool add(int64_t size) {
    if (rank == kMaxRank) return false;
    sizes[rank++] = size;
    return true;
  }
};

bool has_shape(const Tensor& t, const Shape& shape);

/// A tensor's shape is what was planned: any other result is refused.
Error give_shape(KernelContext& ctx, const Tensor& out, const Shape& shape);
inline Error give_shape_of(KernelContext& ctx, const Tensor& out, const Tensor& like) {
  return give_shape(ctx, out, Shape::of(like));
}

/// The shape to which all of them broadcast; false when there is none.
bool broadcast_shape(Tensors tensors, Shape* shape);
Error give_broadcast_shape(KernelContext& ctx, const Tensor& out, Tensors tensors);
bool broadcasts_to(const Tensor& t, const Shape& shape);

/// A dimension counted from either end, of a tensor whose rank of 0 counts as 1.
Error require_dim(KernelContext& ctx, const Tensor& t, int64_t dim, size_t* axis);

/// Extents of rank 0 as of a vector of one element.
inline size_t rank_of(const Tensor& t) { return t.rank == 0 ? 1 : t.rank; }
inline int64_t extent(const Tensor& t, size_t dim) { return t.rank == 0 ? 1 : t.sizes[dim]; }

/// The products of the extents before and after a dimension.
size_t leading(const Tensor& t, size_t dim);
size_t trailing(const Tensor& t, size_t dim);

/// Elements between neighbours along each dimension.
struct Steps {
  int64_t of[kMaxRank];
};
Steps steps_of(const Tensor& t);

/// A number argument: a bool, an integer or a double, or none where it is optional.
struct Number {
  Tag tag = Tag::None;
  int64_t whole = 0;
  double real = 0.0;

  bool present() const { return tag != Tag::None; }
  /// Bool, Long or Double.
  ScalarType type() const;
  /// As C++ converts.
  template <typename T>
  T as() const {
    return tag == Tag::Double ? static_cast<T>(real) : static_cast<T>(whole);
  }
};

template <>
inline int64_t Number::as<int64_t>() const {
  if (tag != Tag::Double) return whole;
  return real >= -0x1p63 && real < 0x1p63 ? static_cast<int64_t>(real) : INT64_MIN;
}

/// `type` and the number together: integers stay integers, a float makes floats.
ScalarType promoted(ScalarType type, const Number& number);
/// Whether the number is in the range of an element type, as c10::overflows defines it.
bool holds(ScalarType type, const Number& number);

/// Integers of a list argument.
struct Ints {
  Span<Value* const> list;
  bool present = false;

  size_t size() const { return list.size(); }
  int64_t operator[](size_t i) const { return list[i]->as_int; }
  /// The value at `i` of a list that may have one for all; `none` of an empty one.
  int64_t at(size_t i, int64_t none) const {
    return size() == 0 ? none : size() == 1 ? (*this)[0] : (*this)[i];
  }
};

/// The arguments of one call. What has the wrong tag is reported by KernelContext's
/// argument_error.
struct Call {
  KernelContext& ctx;
  Args args;

  Tensor& tensor(size_t i) const { return ctx.tensor(args, i); }
  const Tensor* tensor_or_none(size_t i) const { return ctx.optional_tensor(args, i); }
  int64_t integer(size_t i) const { return ctx.integer(args, i); }
  /// `none` where the argument is None.
  int64_t integer_or(size_t i, int64_t none) const { return is_none(i) ? none : integer(i); }
  double real(size_t i) const { return ctx.number(args, i); }
  bool boolean(size_t i) const { return ctx.boolean(args, i); }
  Number number(size_t i) const;
  Number number_or_none(size_t i) const { return is_none(i) ? Number() : number(i); }
  Ints ints(size_t i) const;
  Ints ints_or_none(size_t i) const { return is_none(i) ? Ints() : ints(i); }
  Span<Value* const> tensors(size_t i) const { return ctx.tensor_list(args, i); }
  /// An element type, -1 for None.
  int64_t type_or_none(size_t i) const { return integer_or(i, -1); }
  bool is_none(size_t i) const { return i < args.size() && args[i]->tag == Tag::None; }
  /// Whether a string argument is `text`.
  bool is_text(size_t i, const char* text) const;
  bool ok() const { return ctx.ok(); }
};

}  // namespace hil
