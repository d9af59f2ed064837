#include "kernels/portable/call.h"

#include <cmath>
#include <cstring>

namespace hil {

Error refuse(KernelContext& ctx, const char* what) {
  return ctx.fail(Error::InvalidArgument, "%s", what);
}

Error require_type(KernelContext& ctx, const Tensor& t, TypeSet allowed) {
  if (is_in(t.type, allowed)) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "element type %d is not supported",
                  static_cast<int>(t.type));
}

Error require_same_type(KernelContext& ctx, Tensors tensors) {
  const Tensor* first = *tensors.begin();
  for (const Tensor* t : tensors) {
    if (t != nullptr && t->type != first->type) return refuse(ctx, "element types differ");
  }
  return Error::Ok;
}

bool is_plain(const Tensor& t) {
  for (size_t i = 0; i < t.rank; ++i) {
    if (t.dim_order[i] != i) return false;
  }
  return true;
}

bool is_channels_inner(const Tensor& t) {
  if ((t.rank != 4 && t.rank != 5) || t.dim_order[0] != 0 || t.dim_order[t.rank - 1] != 1) {
    return false;
  }
  for (size_t i = 1; i + 1 < t.rank; ++i) {
    if (t.dim_order[i] != i + 1) return false;
  }
  return true;
}

Error require_same_order(KernelContext& ctx, Tensors tensors) {
  bool plain = true, inner = true;
  for (const Tensor* t : tensors) {
    if (t == nullptr) continue;
    plain = plain && is_plain(*t);
    inner = inner && is_channels_inner(*t);
  }
  return plain || inner ? Error::Ok : refuse(ctx, "tensors have different dim orders");
}

Error require_plain(KernelContext& ctx, const Tensor& t) {
  return is_plain(t) ? Error::Ok : refuse(ctx, "a tensor does not have the plain dim order");
}

Error require_plain_or_channels_inner(KernelContext& ctx, const Tensor& t) {
  if (is_plain_or_channels_inner(t)) return Error::Ok;
  return refuse(ctx, "a tensor is neither plain nor channels-last");
}

Shape Shape::of(const Tensor& t) {
  Shape shape;
  shape.rank = t.rank;
  for (size_t i = 0; i < t.rank; ++i) shape.sizes[i] = t.sizes[i];
  return shape;
}

size_t Shape::numel() const {
  size_t count = 1;
  for (size_t i = 0; i < rank; ++i) count *= static_cast<size_t>(sizes[i]);
  return count;
}

bool has_shape(const Tensor& t, const Shape& shape) {
  bool same = t.rank == shape.rank;
  for (size_t i = 0; same && i < t.rank; ++i) same = t.sizes[i] == shape.sizes[i];
  return same;
}

Error give_shape(KernelContext& ctx, const Tensor& out, const Shape& shape) {
  if (has_shape(out, shape)) return Error::Ok;
  return refuse(ctx, "an output does not have the shape of the result");
}

bool broadcast_shape(Tensors tensors, Shape* shape) {
  for (const Tensor* t : tensors) {
    if (t->rank > shape->rank) shape->rank = t->rank;
  }
  for (size_t i = 0; i < shape->rank; ++i) {
    int64_t& size = shape->sizes[shape->rank - 1 - i];
    size = 1;
    for (const Tensor* t : tensors) {
      const int64_t own = i < t->rank ? t->sizes[t->rank - 1 - i] : 1;
      if (own == size || own == 1) continue;
      if (size != 1) return false;
      size = own;
    }
  }
  return true;
}

Error give_broadcast_shape(KernelContext& ctx, const Tensor& out, Tensors tensors) {
  Shape shape;
  HIL_REQUIRE(broadcast_shape(tensors, &shape), "shapes do not broadcast");
  return give_shape(ctx, out, shape);
}

bool broadcasts_to(const Tensor& t, const Shape& shape) {
  if (t.rank > shape.rank) return false;
  const size_t added = shape.rank - t.rank;
  for (size_t i = 0; i < t.rank; ++i) {
    if (t.sizes[i] != 1 && t.sizes[i] != shape.sizes[added + i]) return false;
  }
  return true;
}

Error require_dim(KernelContext& ctx, const Tensor& t, int64_t dim, size_t* axis) {
  const int64_t count = static_cast<int64_t>(rank_of(t));
  HIL_REQUIRE(dim >= -count && dim < count, "a dimension does not exist");
  *axis = static_cast<size_t>(dim < 0 ? dim + count : dim);
  return Error::Ok;
}

size_t leading(const Tensor& t, size_t dim) {
  size_t product = 1;
  for (size_t i = 0; i < dim && i < t.rank; ++i) product *= static_cast<size_t>(t.sizes[i]);
  return product;
}

size_t trailing(const Tensor& t, size_t dim) {
  size_t product = 1;
  for (size_t i = dim + 1; i < t.rank; ++i) product *= static_cast<size_t>(t.sizes[i]);
  return product;
}

Steps steps_of(const Tensor& t) {
  Steps steps;
  int64_t step = 1;
  for (size_t i = t.rank; i-- > 0;) {
    const size_t dim = t.dim_order[i];
    steps.of[dim] = step;
    step *= t.sizes[dim] == 0 ? 1 : t.sizes[dim];
  }
  return steps;
}

ScalarType Number::type() const {
  return tag == Tag::Bool  ? ScalarType::Bool
         : tag == Tag::Int ? ScalarType::Long
                           : ScalarType::Double;
}

ScalarType promoted(ScalarType type, const Number& number) {
  if (number.tag == Tag::Double) return is_float(type) ? type : ScalarType::Float;
  if (number.tag == Tag::Int) return is_bool(type) ? ScalarType::Long : type;
  return type;
}

namespace {

bool in_range(double value, double low, double high) { return value >= low && value <= high; }

/// The largest finite value of a float type.
double largest(ScalarType type) {
  switch (type) {
    case ScalarType::Half:
      return 65504.0;
    case ScalarType::BFloat16:
      return 0x1.fep127;
    case ScalarType::Float:
      return 0x1.fffffep127;
    default:
      return 0x1.fffffffffffffp1023;
  }
}

}  // namespace

bool holds(ScalarType type, const Number& number) {
  if (is_bool(type)) return true;
  const bool real = number.tag == Tag::Double;
  if (is_float(type)) {
    const double value = number.as<double>(), limit = largest(type);
    return !std::isfinite(value) || in_range(value, -limit, limit);
  }
  const int bits = static_cast<int>(element_size(type)) * 8;
  if (type == ScalarType::Byte) {
    // As c10::overflows: an unsigned type takes a negative whole number that wraps.
    if (!real) return number.whole >= -255 && number.whole <= 255;
    return in_range(number.real, 0.0, 255.0);
  }
  if (real) {
    if (std::isnan(number.real) || std::isinf(number.real)) return false;
    const double limit = std::ldexp(1.0, bits - 1);
    return number.real >= -limit && number.real <= (bits == 64 ? limit : limit - 1.0);
  }
  if (bits == 64) return true;
  const int64_t limit = int64_t{1} << (bits - 1);
  return number.whole >= -limit && number.whole < limit;
}

Number Call::number(size_t i) const {
  Number number;
  if (i < args.size()) {
    const Value& value = *args[i];
    number.tag = value.tag;
    if (value.tag == Tag::Bool) {
      number.whole = value.as_bool ? 1 : 0;
      return number;
    }
    if (value.tag == Tag::Double) {
      number.real = value.as_double;
      return number;
    }
  }
  number.tag = Tag::Int;
  number.whole = ctx.integer(args, i);
  return number;
}

Ints Call::ints(size_t i) const {
  Ints ints;
  if (i < args.size() && args[i]->tag == Tag::IntList) {
    ints.list = args[i]->list;
    ints.present = true;
    return ints;
  }
  (void)ctx.integer(args, i < args.size() ? args.size() : i);  // no integer there: bad argument
  return ints;
}

bool Call::is_text(size_t i, const char* text) const {
  if (i >= args.size() || args[i]->tag != Tag::String) return false;
  const Span<const char> own = args[i]->string;
  return own.size() == std::strlen(text) && std::memcmp(own.data(), text, own.size()) == 0;
}

}  // namespace hil
