// Reductions along dimensions.
#include <cmath>

#include "kernels/operator.h"
#include "kernels/portable/arithmetic.h"
#include "kernels/portable/call.h"

namespace hil {

namespace {

/// Which dimensions are reduced, and where the elements of one result are.
class Reduction {
 public:
  /// The dimensions of a list, all of them when it is empty.
  Error read(KernelContext& ctx, const Tensor& self, const Ints& dims);
  /// One dimension.
  Error read_one(KernelContext& ctx, const Tensor& self, int64_t dim);
  void read_all(const Tensor& self);

  Shape shape(bool keepdim) const;
  /// Elements of one result.
  size_t count() const { return count_; }
  /// Calls first(result) and then next(offset, place) for each of its elements, in logical order,
  /// and last(result).
  template <typename First, typename Next, typename Last>
  void run(First first, Next next, Last last) const;

 private:
  struct Loop {
    int64_t size, step;
  };
  void plan();
  bool is_reduced(size_t dim) const { return (reduced_ >> dim & 1) != 0; }
  /// The sum of the steps to a place of loops.
  static size_t offset_of(const Loop* loops, size_t depth, size_t place);

  const Tensor* self_ = nullptr;
  uint32_t reduced_ = 0;
  bool all_ = false;
  size_t count_ = 1, results_ = 1;
  Loop inside_[kMaxRank], around_[kMaxRank];
  size_t depth_inside_ = 0, depth_around_ = 0;
};

Error Reduction::read(KernelContext& ctx, const Tensor& self, const Ints& dims) {
  self_ = &self;
  all_ = dims.size() == 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    size_t dim;
    HIL_TRY(require_dim(ctx, self, dims[i], &dim));
    HIL_REQUIRE(!is_reduced(dim), "a dimension is named twice");
    reduced_ |= 1u << dim;
  }
  plan();
  return Error::Ok;
}

Error Reduction::read_one(KernelContext& ctx, const Tensor& self, int64_t dim) {
  self_ = &self;
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  reduced_ = 1u << axis;
  plan();
  return Error::Ok;
}

void Reduction::read_all(const Tensor& self) {
  self_ = &self;
  all_ = true;
  plan();
}

void Reduction::plan() {
  if (self_->rank == 0) all_ = true;
  if (all_) {
    reduced_ = ~0u;
    count_ = self_->numel;
    inside_[depth_inside_++] = {static_cast<int64_t>(count_), 1};
    return;
  }
  const Steps steps = steps_of(*self_);
  for (size_t d = 0; d < self_->rank; ++d) {
    const Loop loop{self_->sizes[d], steps.of[d]};
    (is_reduced(d) ? inside_[depth_inside_++] : around_[depth_around_++]) = loop;
    (is_reduced(d) ? count_ : results_) *= static_cast<size_t>(loop.size);
  }
}

Shape Reduction::shape(bool keepdim) const {
  Shape shape;
  for (size_t d = 0; d < self_->rank; ++d) {
    if (!is_reduced(d)) {
      shape.add(self_->sizes[d]);
    } else if (keepdim) {
      shape.add(1);
    }
  }
  return shape;
}

size_t Reduction::offset_of(const Loop* loops, size_t depth, size_t place) {
  size_t offset = 0;
  for (size_t i = depth; i-- > 0;) {
    const size_t size = static_cast<size_t>(loops[i].size);
    offset += place % size * static_cast<size_t>(loops[i].step);
    place /= size;
  }
  return offset;
}

template <typename First, typename Next, typename Last>
void Reduction::run(First first, Next next, Last last) const {
  for (size_t result = 0; result < results_; ++result) {
    const size_t base = offset_of(around_, depth_around_, result);
    first(result);
    if (depth_inside_ == 1) {
      const size_t step = static_cast<size_t>(inside_[0].step);
      for (size_t i = 0; i < count_; ++i) next(base + i * step, i);
    } else {
      for (size_t i = 0; i < count_; ++i) next(base + offset_of(inside_, depth_inside_, i), i);
    }
    last(result);
  }
}

Error require_orders(KernelContext& ctx, const Tensor& self, const Tensor& out) {
  HIL_TRY(require_plain_or_channels_inner(ctx, self));
  return require_plain_or_channels_inner(ctx, out);
}

/// Whether a type argument names an element type, or none.
bool is_type(int64_t wanted, ScalarType type) {
  return wanted == -1 || wanted == static_cast<int64_t>(type);
}

/// Elements of one tensor, read as T.
template <typename T>
struct Source {
  const uint8_t* data;
  size_t size;
  Reader<T> read;

  explicit Source(const Tensor& t)
      : data(t.data), size(element_size(t.type)), read(reader_of<T>(t.type)) {}
  T operator[](size_t i) const { return read(data + i * size); }
};

template <typename T>
struct Target {
  uint8_t* data;
  size_t size;
  Writer<T> write;

  explicit Target(const Tensor& t)
      : data(t.data), size(element_size(t.type)), write(writer_of<T>(t.type)) {}
  void put(size_t i, T value) const { write(data + i * size, value); }
};

/// Calls f with a zero of the type that results of `type` are computed in: bool, int64_t, float or
/// double.
template <typename F>
void in_type(ScalarType type, F f) {
  if (is_bool(type)) {
    f(bool{});
  } else if (type == ScalarType::Double) {
    f(double{});
  } else if (is_float(type)) {
    f(float{});
  } else {
    f(int64_t{});
  }
}

/// A result of a type as an element keeps it.
template <typename T>
T held(ScalarType type, T value) {
  if constexpr (std::is_same<T, float>::value) {
    if (type == ScalarType::Half) return from_half(to_half(value));
    if (type == ScalarType::BFloat16) return from_bfloat16(to_bfloat16(value));
  }
  return wrapped(type, value);
}

template <typename T>
T added(T a, T b) {
  if constexpr (std::is_same<T, bool>::value) return a || b;
  if constexpr (std::is_same<T, int64_t>::value) return Plus()(a, b);
  return static_cast<T>(a + b);
}

template <typename T>
T multiplied(T a, T b) {
  if constexpr (std::is_same<T, bool>::value) return a && b;
  if constexpr (std::is_same<T, int64_t>::value) return Times()(a, b);
  return static_cast<T>(a * b);
}

/// out = the sum of each result's elements, finished by finish(sum).
template <typename T, typename Finish>
void sum_as(const Reduction& reduction, const Tensor& self, Tensor& out, Finish finish) {
  const Source<T> in(self);
  const Target<T> to(out);
  T sum{};
  reduction.run([&](size_t) { sum = T{}; },
                [&](size_t at, size_t i) { sum = i == 0 ? in[at] : added(sum, in[at]); },
                [&](size_t result) { to.put(result, finish(sum)); });
}

/// amax and amin, max and min of a dimension, argmax and argmin: the best element and its place.
/// `beats` says whether a value takes the place of the best so far.
template <typename Beats>
void best_of(const Reduction& reduction, const Tensor& self, Tensor* values, Tensor* places,
             Beats beats) {
  in_type(is_bool(self.type) ? ScalarType::Byte : self.type, [&](auto zero) {
    using T = decltype(zero);
    const Source<T> in(self);
    T best{};
    int64_t place = 0;
    reduction.run([](size_t) {},
                  [&](size_t at, size_t i) {
                    const T value = in[at];
                    if (i != 0 && !beats(value, best)) return;
                    best = value;
                    place = static_cast<int64_t>(i);
                  },
                  [&](size_t result) {
                    if (values != nullptr) Target<T>(*values).put(result, best);
                    if (places != nullptr) places->as<int64_t>()[result] = place;
                  });
  });
}

/// A NaN beats every number and is never beaten, but by itself in amax and amin, which keep the
/// last one.
struct IsGreater {
  template <typename T>
  bool operator()(T a, T b) const {
    return !is_nan(b) && (is_nan(a) || a > b);
  }
};
struct IsLess {
  template <typename T>
  bool operator()(T a, T b) const {
    return !is_nan(b) && (is_nan(a) || a < b);
  }
};

template <typename Beats>
Error extreme(KernelContext& ctx, Args args, Beats beats) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints dims = call.ints(1);
  const bool keepdim = call.boolean(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_orders(ctx, self, out));
  Reduction reduction;
  HIL_TRY(reduction.read(ctx, self, dims));
  HIL_TRY(give_shape(ctx, out, reduction.shape(keepdim)));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_REQUIRE(self.numel != 0, "self is empty");
  best_of(reduction, self, &out, nullptr, beats);
  return Error::Ok;
}

/// The dimension of an optional argument.
Error read_optional(const Call& call, size_t i, const Tensor& self, Reduction* reduction) {
  if (!call.is_none(i)) return reduction->read_one(call.ctx, self, call.integer(i));
  reduction->read_all(self);
  return Error::Ok;
}

template <typename Beats>
Error place_of_extreme(KernelContext& ctx, Args args, Beats beats) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const bool keepdim = call.boolean(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kReals));
  HIL_TRY(require_type(ctx, out, only(ScalarType::Long)));
  Reduction reduction;
  HIL_TRY(read_optional(call, 1, self, &reduction));
  HIL_TRY(give_shape(ctx, out, reduction.shape(keepdim)));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  if (out.numel == 0) return Error::Ok;
  HIL_REQUIRE(self.numel != 0, "self is empty");
  best_of(reduction, self, nullptr, &out, beats);
  return Error::Ok;
}

template <typename Beats>
Error extreme_with_place(KernelContext& ctx, Args args, Beats beats) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1);
  const bool keepdim = call.boolean(2);
  Tensor& values = call.tensor(3);
  Tensor& places = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&self, &values}));
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, places, only(ScalarType::Long)));
  Reduction reduction;
  HIL_TRY(reduction.read_one(ctx, self, dim));
  HIL_TRY(give_shape(ctx, values, reduction.shape(keepdim)));
  HIL_TRY(give_shape(ctx, places, reduction.shape(keepdim)));
  HIL_TRY(require_same_order(ctx, {&self, &values}));
  HIL_TRY(require_plain(ctx, places));
  HIL_TRY(require_plain(ctx, self));
  HIL_REQUIRE(reduction.count() != 0, "the dimension is empty");
  if (values.numel != 0) best_of(reduction, self, &values, &places, beats);
  return Error::Ok;
}

/// The largest or smallest of all elements, compared in out's type.
template <typename Beats>
Error extreme_of_all(KernelContext& ctx, Args args, bool largest, Beats beats) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  Tensor& out = call.tensor(1);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, out, kAll));
  HIL_TRY(give_shape(ctx, out, Shape()));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_REQUIRE(can_cast(self.type, out.type), "out cannot hold the result's element type");
  in_type(is_bool(out.type) ? ScalarType::Byte : out.type, [&](auto zero) {
    using T = decltype(zero);
    T best{};
    if constexpr (std::is_floating_point<T>::value) {
      best = largest ? -static_cast<T>(INFINITY) : static_cast<T>(INFINITY);
    } else if (!is_bool(out.type)) {
      const int bits = static_cast<int>(element_size(out.type)) * 8;
      const int64_t low = static_cast<int64_t>(~uint64_t{0} << (bits - 1));
      const bool is_byte = out.type == ScalarType::Byte;
      best = static_cast<T>(largest ? (is_byte ? 0 : low) : (is_byte ? 255 : ~low));
    } else {
      best = static_cast<T>(largest ? 0 : 1);
    }
    const Source<T> in(self);
    for (size_t i = 0; i < self.numel && !is_nan(best); ++i) {
      const T value = held(out.type, in[i]);
      if (beats(value, best)) best = value;
    }
    Target<T>(out).put(0, best);
  });
  return Error::Ok;
}

/// Variance, and the mean where it is wanted, in E: each operation is rounded to it.
template <typename E>
void vary(const Reduction& reduction, const Tensor& self, Tensor& variance, Tensor* mean,
          double denominator, bool divides_narrow) {
  using W = Wide<E>;
  const Source<W> in(self);
  const W count = kept<E>(static_cast<W>(reduction.count()));
  const Target<W> to(variance);
  W sum{}, middle{};
  const auto start = [&](size_t) { sum = W{}; };
  // Twice over the same elements: the mean, then the squares.
  const auto add = [&](size_t at, size_t i) {
    const W value = kept<E>(in[at]);
    sum = i == 0 ? value : kept<E>(sum + value);
  };
  reduction.run(start, add, [&](size_t result) {
    middle = kept<E>(sum / count);
    if (mean != nullptr) Target<W>(*mean).put(result, middle);
    to.put(result, middle);  // kept there until its squares are summed
  });
  const Source<W> means(variance);
  reduction.run(
      [&](size_t result) {
        middle = means[result];
        sum = W{};
      },
      [&](size_t at, size_t i) {
        const W difference = kept<E>(kept<E>(in[at]) - middle);
        const W square = kept<E>(difference * difference);
        sum = i == 0 ? square : kept<E>(sum + square);
      },
      [&](size_t result) {
        const W narrow = kept<E>(static_cast<W>(denominator));
        const W value = divides_narrow ? sum / narrow
                                       : static_cast<W>(static_cast<double>(sum) / denominator);
        to.put(result, value);
      });
}

Error variance(KernelContext& ctx, const Tensor& self, const Ints& dims, double correction,
               bool keepdim, Tensor& out, Tensor* mean) {
  HIL_TRY(require_type(ctx, self, kFloats));
  HIL_TRY(require_type(ctx, out, kFloats));
  HIL_TRY(require_orders(ctx, self, out));
  Reduction reduction;
  HIL_TRY(reduction.read(ctx, self, dims));
  HIL_TRY(give_shape(ctx, out, reduction.shape(keepdim)));
  if (mean != nullptr) {
    HIL_TRY(require_same_type(ctx, {&out, mean}));
    HIL_TRY(require_plain_or_channels_inner(ctx, *mean));
    HIL_TRY(give_shape(ctx, *mean, reduction.shape(keepdim)));
  }
  const double denominator = static_cast<double>(reduction.count()) - correction;
  if (reduction.count() == 0 || denominator <= 0.0) {
    for (Tensor* t : {&out, mean}) {
      for (size_t i = 0; t != nullptr && i < t->numel; ++i) {
        Target<double>(*t).put(i, static_cast<double>(NAN));
      }
    }
    return Error::Ok;
  }
  if (self.numel == 0) return Error::Ok;
  for_float_type(out.type, [&](auto zero) {
    vary<decltype(zero)>(reduction, self, out, mean, denominator, false);
  });
  return Error::Ok;
}

/// Whether an element is not zero, of bytes or bools.
void any_of(const Reduction& reduction, const Tensor& self, Tensor& out) {
  const Source<bool> in(self);
  bool any = false;
  reduction.run([&](size_t) { any = false; }, [&](size_t at, size_t) { any = any || in[at]; },
                [&](size_t result) { out.data[result] = any ? 1 : 0; });
}

Error require_any(KernelContext& ctx, const Tensor& self, const Tensor& out) {
  HIL_TRY(require_type(ctx, self, kAll));
  return require_type(ctx, out, kBoolOrByte);
}

Error mean(KernelContext& ctx, const Tensor& self, const Ints& dims, bool keepdim, int64_t type,
           Tensor& out) {
  HIL_TRY(require_type(ctx, out, kFloats));
  HIL_TRY(require_type(ctx, self, type == -1 ? kFloats : kAll));
  HIL_REQUIRE(is_type(type, out.type), "out is not of the wanted element type");
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(require_plain(ctx, self));
  Reduction reduction;
  HIL_TRY(reduction.read(ctx, self, dims));
  HIL_TRY(give_shape(ctx, out, reduction.shape(keepdim)));
  const float count = static_cast<float>(reduction.count());
  if (out.type == ScalarType::Double) {
    sum_as<double>(reduction, self, out, [=](double sum) { return sum / double{count}; });
  } else {
    sum_as<float>(reduction, self, out, [=](float sum) { return sum / count; });
  }
  return Error::Ok;
}

/// The product of each result's elements, rounded to out's type at each step.
void multiply(const Reduction& reduction, const Tensor& self, Tensor& out) {
  in_type(out.type, [&](auto zero) {
    using T = decltype(zero);
    const Source<T> in(self);
    T product{};
    reduction.run([&](size_t) { product = T{1}; },
                  [&](size_t at, size_t i) {
                    const T value = held(out.type, in[at]);
                    product = i == 0 ? value : held(out.type, multiplied(product, value));
                  },
                  [&](size_t result) { Target<T>(out).put(result, product); });
  });
}

}  // namespace

Error portable_amax(KernelContext& ctx, Args args) { return extreme(ctx, args, IsGreater()); }
HIL_OPERATOR("aten::amax.out", portable_amax);

Error portable_amin(KernelContext& ctx, Args args) { return extreme(ctx, args, IsLess()); }
HIL_OPERATOR("aten::amin.out", portable_amin);

Error portable_argmax(KernelContext& ctx, Args args) {
  return place_of_extreme(ctx, args, IsGreater());
}
HIL_OPERATOR("aten::argmax.out", portable_argmax);

Error portable_argmin(KernelContext& ctx, Args args) {
  return place_of_extreme(ctx, args, IsLess());
}
HIL_OPERATOR("aten::argmin.out", portable_argmin);

Error portable_max_dim(KernelContext& ctx, Args args) {
  return extreme_with_place(ctx, args, IsGreater());
}
HIL_OPERATOR("aten::max.dim_max", portable_max_dim);

Error portable_min_dim(KernelContext& ctx, Args args) {
  return extreme_with_place(ctx, args, IsLess());
}
HIL_OPERATOR("aten::min.dim_min", portable_min_dim);

Error portable_max_of_all(KernelContext& ctx, Args args) {
  return extreme_of_all(ctx, args, true, IsGreater());
}
HIL_OPERATOR("aten::max.unary_out", portable_max_of_all);

Error portable_min_of_all(KernelContext& ctx, Args args) {
  return extreme_of_all(ctx, args, false, IsLess());
}
HIL_OPERATOR("aten::min.unary_out", portable_min_of_all);

Error portable_any(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1);
  const bool keepdim = call.boolean(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_any(ctx, self, out));
  Reduction reduction;
  HIL_TRY(reduction.read_one(ctx, self, dim));
  HIL_TRY(give_shape(ctx, out, reduction.shape(keepdim)));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  any_of(reduction, self, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::any.out", portable_any);

Error portable_any_dims(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints dims = call.ints_or_none(1);
  const bool keepdim = call.boolean(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_any(ctx, self, out));
  HIL_TRY(require_orders(ctx, self, out));
  if (dims.present && dims.size() == 0) {
    HIL_TRY(give_shape_of(ctx, out, self));
    HIL_TRY(require_same_order(ctx, {&self, &out}));
    const Source<bool> in(self);
    for (size_t i = 0; i < out.numel; ++i) out.data[i] = in[i] ? 1 : 0;
    return Error::Ok;
  }
  Reduction reduction;
  HIL_TRY(reduction.read(ctx, self, dims));
  HIL_TRY(give_shape(ctx, out, reduction.shape(keepdim)));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  any_of(reduction, self, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::any.dims_out", portable_any_dims);

Error portable_any_all(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  Tensor& out = call.tensor(1);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_any(ctx, self, out));
  HIL_TRY(give_shape(ctx, out, Shape()));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  Reduction reduction;
  reduction.read_all(self);
  any_of(reduction, self, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::any.all_out", portable_any_all);

Error portable_sum(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints dims = call.ints_or_none(1);
  const bool keepdim = call.boolean(2);
  const int64_t type = call.type_or_none(3);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, out, kAll));
  HIL_REQUIRE(is_type(type, out.type), "out is not of the wanted element type");
  HIL_TRY(require_orders(ctx, self, out));
  Reduction reduction;
  HIL_TRY(reduction.read(ctx, self, dims));
  HIL_TRY(give_shape(ctx, out, reduction.shape(keepdim)));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(require_plain(ctx, self));
  in_type(out.type, [&](auto zero) {
    using T = decltype(zero);
    sum_as<T>(reduction, self, out, [](T sum) { return sum; });
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::sum.IntList_out", portable_sum);

Error portable_mean(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints dims = call.ints_or_none(1);
  const bool keepdim = call.boolean(2);
  const int64_t type = call.type_or_none(3);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  return mean(ctx, self, dims, keepdim, type, out);
}
HIL_OPERATOR("aten::mean.out", portable_mean);

Error portable_mean_of_all(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t type = call.type_or_none(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  return mean(ctx, self, Ints(), false, type, out);
}
HIL_OPERATOR("aten::mean.dtype_out", portable_mean_of_all);

Error portable_prod(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t type = call.type_or_none(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, out, kAll));
  const ScalarType natural = is_float(self.type) ? self.type : ScalarType::Long;
  HIL_REQUIRE(type == -1 ? out.type == natural : is_type(type, out.type),
              "out is not of the wanted element type");
  HIL_TRY(give_shape(ctx, out, Shape()));
  Reduction reduction;
  reduction.read_all(self);
  multiply(reduction, self, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::prod.out", portable_prod);

Error portable_prod_dim(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1);
  const bool keepdim = call.boolean(2);
  const int64_t type = call.type_or_none(3);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, out, kAll));
  HIL_REQUIRE(is_type(type, out.type), "out is not of the wanted element type");
  if (self.rank != 0) HIL_TRY(require_orders(ctx, self, out));
  Reduction reduction;
  HIL_TRY(reduction.read_one(ctx, self, dim));
  HIL_TRY(give_shape(ctx, out, reduction.shape(keepdim)));
  multiply(reduction, self, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::prod.int_out", portable_prod_dim);

Error portable_var(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints dims = call.ints_or_none(1);
  const bool unbiased = call.boolean(2);
  const bool keepdim = call.boolean(3);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(require_plain(ctx, self));
  return variance(ctx, self, dims, unbiased ? 1.0 : 0.0, keepdim, out, nullptr);
}
HIL_OPERATOR("aten::var.out", portable_var);

Error portable_var_correction(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints dims = call.ints_or_none(1);
  const Number correction = call.number_or_none(2);
  const bool keepdim = call.boolean(3);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  const double value = correction.present() ? correction.as<double>() : 1.0;
  return variance(ctx, self, dims, value, keepdim, out, nullptr);
}
HIL_OPERATOR("aten::var.correction_out", portable_var_correction);

Error portable_var_mean(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints dims = call.ints_or_none(1);
  const Number correction = call.number_or_none(2);
  const bool keepdim = call.boolean(3);
  Tensor& out = call.tensor(4);
  Tensor& mean_out = call.tensor(5);
  if (!call.ok()) return ctx.argument_error();
  const double value = correction.present() ? correction.as<double>() : 1.0;
  return variance(ctx, self, dims, value, keepdim, out, &mean_out);
}
HIL_OPERATOR("aten::var_mean.correction_out", portable_var_mean);

/// Running sums of a dimension, in out's type. Tensors of any dim order are taken for plain ones.
Error portable_cumsum(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1);
  const int64_t type = call.type_or_none(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, out, kAll));
  size_t axis;
  HIL_REQUIRE(self.rank != 0, "self has no dimension");
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  HIL_REQUIRE(is_type(type, out.type), "out is not of the wanted element type");
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(give_shape_of(ctx, out, self));
  const size_t inner = trailing(self, axis), count = static_cast<size_t>(extent(self, axis));
  in_type(out.type, [&](auto zero) {
    using T = decltype(zero);
    const Source<T> in(self), sums(out);
    const Target<T> to(out);
    for (size_t i = 0; i < self.numel; ++i) {
      const bool is_first = i / inner % count == 0;
      const T value = held(out.type, in[i]);
      to.put(i, is_first ? value : added(value, sums[i - inner]));
    }
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::cumsum.out", portable_cumsum);

}  // namespace hil
