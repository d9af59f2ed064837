// Products of matrices, and distances between rows. Sums go in order, in the element type.
#include <cmath>
#include <utility>

#include "kernels/operator.h"
#include "kernels/portable/arithmetic.h"
#include "kernels/portable/call.h"
#include "kernels/portable/readers.h"

namespace hil {

namespace {

/// Floats, multiplied and added as they lie in memory.
struct Floats {
  using T = float;
  static constexpr size_t kColumns = 4;  // sums at a time, as many as registers hold
  T get(const uint8_t* data, size_t i) const { return reinterpret_cast<const float*>(data)[i]; }
  void put(Tensor& t, size_t i, T value) const { t.as<float>()[i] = value; }
  T of(const Number& number) const { return number.as<float>(); }
  T times_plus(T a, T b, T c) const { return c + a * b; }
};

/// Integers of any type. They wrap when they are stored: no step before has to.
struct Wholes {
  using T = int64_t;
  static constexpr size_t kColumns = 1;
  size_t size;
  Reader<T> read;
  Writer<T> write;

  explicit Wholes(ScalarType type)
      : size(element_size(type)), read(reader_of<T>(type)), write(writer_of<T>(type)) {}
  T get(const uint8_t* data, size_t i) const { return read(data + i * size); }
  void put(Tensor& t, size_t i, T value) const { write(t.data + i * size, value); }
  T of(const Number& number) const { return number.as<T>(); }
  T times_plus(T a, T b, T c) const { return Plus()(Times()(a, b), c); }
};

/// The other floats. Each operation is rounded to the type: of two 16-bit values a product is exact
/// in a double, and a sum that is rounded to a double and then to a float is that of floats.
struct Reals {
  using T = double;
  static constexpr size_t kColumns = 1;
  size_t size;
  Reader<T> read;
  Writer<T> write;

  explicit Reals(ScalarType type)
      : size(element_size(type)), read(reader_of<T>(type)), write(writer_of<T>(type)) {}
  T get(const uint8_t* data, size_t i) const { return read(data + i * size); }
  void put(Tensor& t, size_t i, T value) const { write(t.data + i * size, value); }
  T of(const Number& number) const { return kept(number.as<T>()); }
  T times_plus(T a, T b, T c) const { return kept(c + kept(a * b)); }

 private:
  T kept(T value) const {
    alignas(T) uint8_t element[sizeof(T)];
    write(element, value);
    return read(element);
  }
};

/// Calls f with the arithmetic of an element type, of kReals.
template <typename F>
void in_arithmetic_of(ScalarType type, F f) {
  if (type == ScalarType::Float) {
    f(Floats());
  } else if (is_float(type)) {
    f(Reals(type));
  } else {
    f(Wholes(type));
  }
}

/// How the second matrix lies: as it is read, or with its columns as rows.
enum class Second { Plain, Transposed };

/// rows x inner times inner x columns, of matrices that start at an element of their tensors.
template <Second kSecond>
struct Product {
  size_t rows, inner, columns;

  /// Calls put(i, sum) for each element i of the product.
  template <typename Arithmetic, typename Put>
  void each(const Arithmetic& in, const Tensor& a, size_t first, const Tensor& b, size_t second,
            Put put) const {
    constexpr size_t kAtOnce = Arithmetic::kColumns;
    for (size_t row = 0, i = 0; row < rows; ++row, first += inner) {
      size_t column = 0;
      for (; column + kAtOnce <= columns; column += kAtOnce, i += kAtOnce) {
        sums(in, a, first, b, second + column * across(), i, put,
             std::make_index_sequence<kAtOnce>());
      }
      for (; column < columns; ++column, ++i) {
        sums(in, a, first, b, second + column * across(), i, put, std::index_sequence<0>());
      }
    }
  }

 private:
  static constexpr bool kPlain = kSecond == Second::Plain;
  size_t across() const { return kPlain ? 1 : inner; }
  size_t next() const { return kPlain ? columns : 1; }

  /// Neighbouring columns of one row. Each sum is in the order of `inner`.
  template <typename Arithmetic, typename Put, size_t... kAt>
  void sums(const Arithmetic& in, const Tensor& a, size_t first, const Tensor& b, size_t second,
            size_t i, Put put, std::index_sequence<kAt...>) const {
    typename Arithmetic::T sum[sizeof...(kAt)] = {};
    const uint8_t *left = a.data, *right = b.data;
    const size_t column[] = {second + kAt * across()...};
    for (size_t k = 0; k < inner; ++k) {
      const auto value = in.get(left, first + k);
      ((sum[kAt] = in.times_plus(value, in.get(right, column[kAt] + k * next()), sum[kAt])), ...);
    }
    (put(i + kAt, sum[kAt]), ...);
  }
};

size_t size_of(const Tensor& t, size_t dim) { return static_cast<size_t>(t.sizes[dim]); }

Error require_matrix(KernelContext& ctx, const Tensor& t, size_t rank) {
  HIL_REQUIRE(t.rank == rank, "a matrix has another number of dimensions");
  return Error::Ok;
}

Shape shape_of(int64_t rows, int64_t columns) {
  Shape shape;
  shape.add(rows);
  shape.add(columns);
  return shape;
}

/// How far apart two rows are, by the norm p.
struct Distance {
  double p;

  template <typename E>
  E between(const E* a, const E* b, size_t width) const {
    using W = Wide<E>;
    W sum = 0;
    for (size_t k = 0; k < width; ++k) {
      const W gap = std::abs(kept<E>(static_cast<W>(a[k]) - static_cast<W>(b[k])));
      if (std::isinf(p)) {
        sum = sum < gap ? gap : sum;
        continue;
      }
      const W part = p == 0.0   ? static_cast<W>(gap == 0 ? 0 : 1)
                     : p == 1.0 ? gap
                     : p == 2.0 ? kept<E>(gap * gap)
                                : kept<E>(std::pow(gap, kept<E>(static_cast<W>(p))));
      sum = kept<E>(sum + part);
    }
    if (p == 2.0) return static_cast<E>(std::sqrt(sum));
    if (p == 0.0 || p == 1.0 || std::isinf(p)) return static_cast<E>(sum);
    const double power = 1.0 / static_cast<double>(kept<E>(static_cast<W>(p)));
    return static_cast<E>(static_cast<W>(std::pow(static_cast<double>(sum), power)));
  }
};

/// The step from one batch to the next of a dimension that broadcasts, of tensors whose last two
/// dimensions are matrices.
size_t batch_offset(const Tensor& t, const Tensor& out, size_t batch) {
  const Steps steps = steps_of(t);
  int64_t offset = 0;
  for (size_t d = out.rank - 2u; d-- > 0;) {
    const int64_t at = static_cast<int64_t>(batch % size_of(out, d));
    batch /= size_of(out, d);
    const size_t added = static_cast<size_t>(out.rank - t.rank);
    if (d >= added && t.sizes[d - added] != 1) offset += at * steps.of[d - added];
  }
  return static_cast<size_t>(offset);
}

}  // namespace

Error portable_mm(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& mat2 = call.tensor(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  for (const Tensor* t : {&self, &mat2, static_cast<const Tensor*>(&out)}) {
    HIL_TRY(require_matrix(ctx, *t, 2));
  }
  HIL_TRY(require_same_type(ctx, {&self, &mat2, &out}));
  HIL_TRY(require_type(ctx, self, kReals));
  HIL_REQUIRE(self.sizes[1] == mat2.sizes[0], "the matrices do not fit each other");
  HIL_TRY(give_shape(ctx, out, shape_of(self.sizes[0], mat2.sizes[1])));
  HIL_TRY(require_same_order(ctx, {&self, &mat2, &out}));
  HIL_TRY(require_plain(ctx, self));
  const Product<Second::Plain> product{size_of(self, 0), size_of(self, 1), size_of(mat2, 1)};
  in_arithmetic_of(self.type, [&](const auto& in) {
    product.each(in, self, 0, mat2, 0, [&](size_t i, auto sum) { in.put(out, i, sum); });
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::mm.out", portable_mm);

Error portable_bmm(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& mat2 = call.tensor(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  for (const Tensor* t : {&self, &mat2, static_cast<const Tensor*>(&out)}) {
    HIL_TRY(require_matrix(ctx, *t, 3));
  }
  HIL_TRY(require_same_type(ctx, {&self, &mat2, &out}));
  HIL_TRY(require_type(ctx, self, kReals));
  HIL_REQUIRE(self.sizes[0] == mat2.sizes[0] && self.sizes[2] == mat2.sizes[1],
              "the matrices do not fit each other");
  HIL_TRY(require_same_order(ctx, {&self, &mat2, &out}));
  HIL_TRY(require_plain(ctx, self));
  Shape shape = Shape::of(self);
  shape.sizes[2] = mat2.sizes[2];
  HIL_TRY(give_shape(ctx, out, shape));
  const Product<Second::Plain> product{size_of(self, 1), size_of(self, 2), size_of(mat2, 2)};
  in_arithmetic_of(self.type, [&](const auto& in) {
    for (size_t batch = 0; batch < size_of(self, 0); ++batch) {
      const size_t first = batch * product.rows * product.inner;
      const size_t second = batch * product.inner * product.columns;
      const size_t target = batch * product.rows * product.columns;
      product.each(in, self, first, mat2, second,
                   [&](size_t i, auto sum) { in.put(out, target + i, sum); });
    }
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::bmm.out", portable_bmm);

Error portable_addmm(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& mat1 = call.tensor(1);
  const Tensor& mat2 = call.tensor(2);
  const Number beta = call.number(3), alpha = call.number(4);
  Tensor& out = call.tensor(5);
  if (!call.ok()) return ctx.argument_error();
  for (const Tensor* t : {&mat1, &mat2, static_cast<const Tensor*>(&out)}) {
    HIL_TRY(require_matrix(ctx, *t, 2));
  }
  HIL_TRY(require_same_type(ctx, {&self, &mat1, &mat2, &out}));
  HIL_TRY(require_type(ctx, self, kReals));
  HIL_REQUIRE(mat1.sizes[1] == mat2.sizes[0], "the matrices do not fit each other");
  HIL_TRY(give_shape(ctx, out, shape_of(mat1.sizes[0], mat2.sizes[1])));
  HIL_REQUIRE(broadcasts_to(self, Shape::of(out)), "self does not broadcast to the product");
  HIL_TRY(require_same_order(ctx, {&self, &mat1, &mat2, &out}));
  HIL_TRY(require_plain(ctx, self));
  const Product<Second::Plain> product{size_of(mat1, 0), size_of(mat1, 1), size_of(mat2, 1)};
  const bool by_row = self.rank == 2 && self.sizes[0] != 1;
  const bool by_column = self.rank != 0 && self.sizes[self.rank - 1] != 1;
  in_arithmetic_of(self.type, [&](const auto& in) {
    const auto scale = in.of(alpha), share = in.of(beta);
    product.each(in, mat1, 0, mat2, 0, [&](size_t i, auto sum) {
      const size_t row = i / product.columns, column = i % product.columns;
      const size_t place = (by_row ? row * (by_column ? product.columns : 1) : 0) +
                           (by_column ? column : 0);
      const auto scaled = in.times_plus(sum, scale, 0);
      in.put(out, i, in.times_plus(in.get(self.data, place), share, scaled));
    });
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::addmm.out", portable_addmm);

Error portable_linear(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const Tensor& weight = call.tensor(1);
  const Tensor* bias = call.tensor_or_none(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_matrix(ctx, weight, 2));
  HIL_REQUIRE(input.rank >= 1 && input.sizes[input.rank - 1] == weight.sizes[1],
              "the matrices do not fit each other");
  HIL_TRY(require_same_type(ctx, {&input, &weight, bias, &out}));
  HIL_TRY(require_type(ctx, input, kReals));
  Shape shape = Shape::of(input);
  shape.sizes[input.rank - 1] = weight.sizes[0];
  HIL_TRY(give_shape(ctx, out, shape));
  HIL_TRY(require_same_order(ctx, {&input, &weight, &out}));
  HIL_TRY(require_plain(ctx, input));
  const size_t columns = size_of(weight, 0), inner = size_of(weight, 1);
  HIL_REQUIRE(bias == nullptr || (bias->rank == 1 && size_of(*bias, 0) == columns),
              "bias is not a vector of the outputs");
  const size_t rows = columns == 0 ? 0 : out.numel / columns;
  const Product<Second::Transposed> product{rows, inner, columns};
  in_arithmetic_of(input.type, [&](const auto& in) {
    product.each(in, input, 0, weight, 0, [&](size_t i, auto sum) {
      in.put(out, i,
             bias == nullptr ? sum : in.times_plus(sum, 1, in.get(bias->data, i % columns)));
    });
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::linear.out", portable_linear);

Error portable_cdist_forward(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& x1 = call.tensor(0);
  const Tensor& x2 = call.tensor(1);
  const Distance distance{call.real(2)};
  const int64_t mode = call.integer_or(3, 0);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_order(ctx, {&x1, &x2, &out}));
  HIL_TRY(require_plain(ctx, x1));
  HIL_TRY(require_same_type(ctx, {&x1, &x2, &out}));
  HIL_TRY(require_type(ctx, out, kFloats));
  HIL_REQUIRE(x1.rank >= 2 && x2.rank >= 2, "a matrix has another number of dimensions");
  const size_t width = size_of(x1, x1.rank - 1u);
  HIL_REQUIRE(size_of(x2, x2.rank - 1u) == width, "the rows differ in length");
  HIL_REQUIRE(distance.p >= 0.0, "the norm is negative");
  HIL_REQUIRE(mode >= 0 && mode <= 2, "there is no such mode");
  Tensor first = x1, second = x2;  // their batches
  first.rank = static_cast<uint8_t>(x1.rank - 2);
  second.rank = static_cast<uint8_t>(x2.rank - 2);
  Shape shape;
  HIL_REQUIRE(broadcast_shape({&first, &second}, &shape), "the batches do not broadcast");
  const int64_t rows = x1.sizes[x1.rank - 2], columns = x2.sizes[x2.rank - 2];
  HIL_REQUIRE(shape.add(rows) && shape.add(columns), "there are too many dimensions");
  HIL_TRY(give_shape(ctx, out, shape));
  for_float_type(out.type, [&](auto zero) {
    using E = decltype(zero);
    for (size_t i = 0; i < out.numel; ++i) {
      const size_t column = i % static_cast<size_t>(columns);
      const size_t row = i / static_cast<size_t>(columns) % static_cast<size_t>(rows);
      const size_t batch = i / static_cast<size_t>(rows * columns);
      const E* a = x1.as<E>() + batch_offset(x1, out, batch) + row * width;
      const E* b = x2.as<E>() + batch_offset(x2, out, batch) + column * width;
      out.as<E>()[i] = width == 0 ? E{} : distance.between(a, b, width);
    }
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::_cdist_forward.out", portable_cdist_forward);

Error portable_pdist_forward(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Distance distance{call.real(1)};
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_type(ctx, self, kFloats));
  HIL_TRY(require_matrix(ctx, self, 2));
  HIL_REQUIRE(distance.p >= 0.0, "the norm is negative");
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(require_plain(ctx, self));
  const size_t rows = size_of(self, 0), width = size_of(self, 1);
  Shape shape;
  shape.add(rows == 0 ? 0 : static_cast<int64_t>(rows * (rows - 1) / 2));
  HIL_TRY(give_shape(ctx, out, shape));
  for_float_type(out.type, [&](auto zero) {
    using E = decltype(zero);
    E* target = out.as<E>();
    for (size_t i = 0; i < rows; ++i) {
      for (size_t k = i + 1; k < rows; ++k) {
        *target++ = distance.between(self.as<E>() + i * width, self.as<E>() + k * width, width);
      }
    }
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::_pdist_forward.out", portable_pdist_forward);

}  // namespace hil
