// Images read between their elements: enlarged or reduced ones, and ones that a grid picks.
#include <algorithm>
#include <cmath>

#include "kernels/operator.h"
#include "kernels/portable/elements.h"
#include "kernels/portable/windows.h"

namespace hil {

namespace {

constexpr size_t kSides = 2;

/// What both sides of an image are enlarged by: elements of the input for one of the output.
struct Scales {
  float rows, columns;
};

float scale_of(int64_t in, int64_t out, bool corners, double factor) {
  if (!corners) return static_cast<float>(1.0 / factor);
  if (out <= 1) return 0.0f;
  return static_cast<float>(static_cast<double>(in - 1) / static_cast<double>(out - 1));
}

/// Reads output_size and scale_factors, arguments 1 and `factor`, and gives `out` its shape.
Error read_sizes(const Call& call, size_t factor, bool corners, const Tensor& input, Tensor& out,
                 Scales* scales) {
  KernelContext& ctx = call.ctx;
  const Ints size = call.ints_or_none(1);
  const bool factors = !call.is_none(factor);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&input, &out}));
  HIL_TRY(require_same_order(ctx, {&input, &out}));
  HIL_REQUIRE(input.rank == 4 && out.rank == 4, "the input or out is no image");
  HIL_TRY(require_plain_or_channels_inner(ctx, input));
  HIL_REQUIRE(size.present != factors, "there is not either a size or factors");
  double by[kSides];
  Shape shape = Shape::of(input);
  if (factors) {
    const Value& value = *call.args[factor];
    HIL_REQUIRE(value.tag == Tag::DoubleList && value.doubles.size() == kSides,
                "there are not two factors");
    for (size_t i = 0; i < kSides; ++i) {
      by[i] = value.doubles[i];
      HIL_REQUIRE(by[i] > 0.0, "a factor is not positive");
      const double extent = static_cast<double>(input.sizes[2 + i]) * by[i];
      HIL_REQUIRE(extent < 0x1p31, "the result is too large");
      shape.sizes[2 + i] = static_cast<int32_t>(extent);
    }
  } else {
    HIL_REQUIRE(size.size() == kSides, "output_size is not that of an image");
    for (size_t i = 0; i < kSides; ++i) {
      shape.sizes[2 + i] = size[i];
      by[i] = static_cast<double>(size[i]) / static_cast<double>(input.sizes[2 + i]);
    }
  }
  HIL_REQUIRE(shape.sizes[2] > 0 && shape.sizes[3] > 0, "the result would be empty");
  HIL_TRY(give_shape(ctx, out, shape));
  HIL_TRY(require_type(ctx, input, kReals));
  scales->rows = scale_of(input.sizes[2], out.sizes[2], corners, by[0]);
  scales->columns = scale_of(input.sizes[3], out.sizes[3], corners, by[1]);
  return Error::Ok;
}

int64_t nearest(float scale, int64_t position, int64_t size) {
  return std::min(static_cast<int64_t>(std::floor(static_cast<float>(position) * scale)), size - 1);
}

/// Two neighbours and their weights.
struct Between {
  int64_t first, second;
  float weight, rest;

  Between(float scale, int64_t position, int64_t in, int64_t out, bool corners) {
    if (in == out) {
      first = second = position;
      weight = 1.0f;
      rest = 0.0f;
      return;
    }
    const float at = static_cast<float>(position);
    float real = corners ? scale * at : scale * (at + 0.5f) - 0.5f;
    if (!corners && real < 0.0f) real = 0.0f;
    first = std::min(static_cast<int64_t>(std::floor(real)), in - 1);
    second = first + (first < in - 1 ? 1 : 0);
    rest = std::min(std::max(real - static_cast<float>(first), 0.0f), 1.0f);
    weight = 1.0f - rest;
  }
};

/// The elements that one of the output is made of along a side, and their weights.
struct Filter {
  int64_t first, last, alone = -1;
  float center, inverse, total = 1.0f;

  Filter(float scale, int64_t position, int64_t size) {
    center = scale * (static_cast<float>(position) + 0.5f);
    const float reach = scale >= 1.0f ? scale : 1.0f;
    inverse = scale >= 1.0f ? 1.0f / scale : 1.0f;
    first = std::max(static_cast<int64_t>(center - reach + 0.5f), int64_t{0});
    last = std::min(static_cast<int64_t>(center + reach + 0.5f), size);
    float sum = 0.0f;
    for (int64_t i = first; i < last; ++i) sum += raw(i);
    if (last > first && sum > 0.0f) {
      total = sum;
      return;
    }
    alone = std::max(int64_t{0}, std::min(static_cast<int64_t>(center), size - 1));
    first = alone;
    last = alone + 1;
  }

  float raw(int64_t i) const {
    const float x = std::abs((static_cast<float>(i) - center + 0.5f) * inverse);
    return x < 1.0f ? 1.0f - x : 0.0f;
  }
  float weight(int64_t i) const { return alone >= 0 ? 1.0f : raw(i) / total; }
};

/// What an element times a float is computed in.
template <typename E>
using Product = std::conditional_t<std::is_same<E, double>::value, double, float>;

template <typename E>
E element_from(Product<E> value) {
  return static_cast<E>(value);
}

template <typename E, typename F>
void each_pixel(const Planes& out, Tensor& target, F f) {
  for (int64_t b = 0; b < out.batches; ++b) {
    for (int64_t c = 0; c < out.channels; ++c) {
      for (int64_t y = 0; y < out.height; ++y) {
        for (int64_t x = 0; x < out.width; ++x) {
          target.as<E>()[out.at(b, c, y, x)] = f(b, c, y, x);
        }
      }
    }
  }
}

/// A number of type E whose results are rounded to it at once.
template <typename E>
struct Rounded {
  Wide<E> value;

  Rounded(Wide<E> v) : value(kept<E>(v)) {}  // NOLINT(google-explicit-constructor)
  explicit Rounded(int64_t v) : Rounded(static_cast<Wide<E>>(v)) {}

  friend Rounded operator+(Rounded a, Rounded b) { return a.value + b.value; }
  friend Rounded operator-(Rounded a, Rounded b) { return a.value - b.value; }
  friend Rounded operator*(Rounded a, Rounded b) { return a.value * b.value; }
  friend Rounded operator/(Rounded a, Rounded b) { return a.value / b.value; }
};

enum class Mode : int64_t { kBilinear, kNearest, kBicubic };
enum class Padding : int64_t { kZeros, kBorder, kReflection };

/// A side of the image from which a grid picks. T is a float type or Rounded.
template <typename E>
struct Picked {
  using T = Rounded<E>;
  int64_t size;
  Padding padding;
  bool corners;

  T unnormalised(T coordinate) const {
    if (corners) return (coordinate + T(int64_t{1})) / T(int64_t{2}) * T(size - 1);
    return ((coordinate + T(int64_t{1})) * T(size) - T(int64_t{1})) / T(int64_t{2});
  }
  T clipped(T at) const {
    const T least(int64_t{0}), most(size - 1);
    const T low = at.value < least.value ? least : at;
    return low.value < most.value ? low : most;
  }
  T reflected(T at) const {
    const int64_t low = corners ? 0 : -1, high = corners ? 2 * (size - 1) : 2 * size - 1;
    if (low == high) return T(int64_t{0});
    const T least = T(low) / T(int64_t{2}), span = T(high - low) / T(int64_t{2});
    const T inside = std::fabs((at - least).value);
    const T extra = std::fmod(inside.value, span.value);
    const auto flips = static_cast<int32_t>(std::floor((inside / span).value));
    return flips % 2 == 0 ? extra + least : span - extra + least;
  }
  T at(T coordinate) const {
    const T own = unnormalised(coordinate);
    if (padding == Padding::kBorder) return clipped(own);
    return padding == Padding::kReflection ? clipped(reflected(own)) : own;
  }
  bool has(int64_t i) const { return i >= 0 && i < size; }
  int64_t clipped(int64_t i) const { return std::min(size - 1, std::max(i, int64_t{0})); }
  /// Where bicubic reads: a reflected place is rounded to the element type.
  int64_t inside(int64_t i) const {
    if (padding != Padding::kReflection) return clipped(i);
    return static_cast<int64_t>(clipped(reflected(T(i))).value);
  }
};

/// The weights of the four elements around a place.
template <typename E>
struct Cubic {
  using T = Rounded<E>;
  T of[4];

  explicit Cubic(T t)
      : of{outer(t + one()), inner(t), inner(one() - t), outer(one() - t + one())} {}

  static T one() { return T(int64_t{1}); }
  static T slope() { return T(static_cast<Wide<E>>(-0.75)); }
  static T inner(T x) {
    return ((slope() + T(int64_t{2})) * x - (slope() + T(int64_t{3}))) * x * x + one();
  }
  static T outer(T x) {
    return ((slope() * x - T(int64_t{5}) * slope()) * x + T(int64_t{8}) * slope()) * x -
           T(int64_t{4}) * slope();
  }
  T apply(T a, T b, T c, T d) const { return a * of[0] + b * of[1] + c * of[2] + d * of[3]; }
};

/// One output element that a grid picks.
template <typename E>
struct Sample {
  using T = Rounded<E>;
  using W = Wide<E>;
  const Planes& in;
  const Tensor& input;
  Picked<E> rows, columns;

  W read(int64_t b, int64_t c, int64_t y, int64_t x) const {
    if (rows.padding == Padding::kZeros) {
      if (!rows.has(y) || !columns.has(x)) return W(0);
    } else {
      y = rows.clipped(y);
      x = columns.clipped(x);
    }
    return static_cast<W>(input.as<E>()[in.at(b, c, y, x)]);
  }

  // In W throughout.
  W bilinear(int64_t b, int64_t c, W grid_x, W grid_y) const;
  W nearest(int64_t b, int64_t c, T grid_x, T grid_y) const {
    const auto x = static_cast<int64_t>(std::nearbyint(columns.at(grid_x).value));
    const auto y = static_cast<int64_t>(std::nearbyint(rows.at(grid_y).value));
    return read(b, c, y, x);
  }
  W bicubic(int64_t b, int64_t c, T grid_x, T grid_y) const {
    const T x = columns.unnormalised(grid_x), y = rows.unnormalised(grid_y);
    const auto left = static_cast<int64_t>(std::floor(x.value));
    const auto top = static_cast<int64_t>(std::floor(y.value));
    const Cubic<E> along(x - T(left)), across(y - T(top));
    const auto value = [&](int64_t row, int64_t column) {
      if (rows.padding == Padding::kZeros) return T(read(b, c, row, column));
      return T(read(b, c, rows.inside(row), columns.inside(column)));
    };
    const auto line = [&](int64_t row) {
      return along.apply(value(row, left - 1), value(row, left), value(row, left + 1),
                         value(row, left + 2));
    };
    return across.apply(line(top - 1), line(top), line(top + 1), line(top + 2)).value;
  }
};

template <typename E>
Wide<E> Sample<E>::bilinear(int64_t b, int64_t c, W grid_x, W grid_y) const {
  // Places are those of the wider type, so that nothing is rounded to 16 bits.
  const Picked<W> across{columns.size, columns.padding, columns.corners};
  const Picked<W> down{rows.size, rows.padding, rows.corners};
  const W x = across.at(grid_x).value, y = down.at(grid_y).value;
  const auto left = static_cast<int64_t>(std::floor(x));
  const auto top = static_cast<int64_t>(std::floor(y));
  const W right_weight = x - static_cast<W>(left), left_weight = static_cast<W>(left + 1) - x;
  const W bottom_weight = y - static_cast<W>(top), top_weight = static_cast<W>(top + 1) - y;
  const bool zeros = rows.padding == Padding::kZeros;
  W sum = 0;
  const auto add = [&](int64_t row, int64_t column, W weight) {
    if (zeros && !(rows.has(row) && columns.has(column))) return;
    sum += read(b, c, row, column) * weight;
  };
  add(top, left, left_weight * top_weight);
  add(top, left + 1, right_weight * top_weight);
  add(top + 1, left, left_weight * bottom_weight);
  add(top + 1, left + 1, right_weight * bottom_weight);
  return sum;
}

}  // namespace

Error portable_upsample_nearest2d(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  Tensor& out = call.tensor(3);
  Scales scales = {};
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(read_sizes(call, 2, false, input, out, &scales));
  const Planes in(input, kSides, true), to(out, kSides, true);
  for_type(input.type, [&](auto zero) {
    using E = decltype(zero);
    each_pixel<E>(to, out, [&](int64_t b, int64_t c, int64_t y, int64_t x) {
      return input.as<E>()[in.at(b, c, nearest(scales.rows, y, in.height),
                                 nearest(scales.columns, x, in.width))];
    });
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::upsample_nearest2d.vec_out", portable_upsample_nearest2d);

Error portable_upsample_bilinear2d(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const bool corners = call.boolean(2);
  Tensor& out = call.tensor(4);
  Scales scales = {};
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(read_sizes(call, 3, corners, input, out, &scales));
  const Planes in(input, kSides, true), to(out, kSides, true);
  for_type(input.type, [&](auto zero) {
    using E = decltype(zero);
    using W = Product<E>;
    each_pixel<E>(to, out, [&](int64_t b, int64_t c, int64_t y, int64_t x) {
      const Between rows(scales.rows, y, in.height, to.height, corners);
      const Between columns(scales.columns, x, in.width, to.width, corners);
      const auto along = [&](int64_t row) {
        const W left = static_cast<W>(input.as<E>()[in.at(b, c, row, columns.first)]);
        const W right = static_cast<W>(input.as<E>()[in.at(b, c, row, columns.second)]);
        return left * static_cast<W>(columns.weight) + right * static_cast<W>(columns.rest);
      };
      return element_from<E>(along(rows.first) * static_cast<W>(rows.weight) +
                             along(rows.second) * static_cast<W>(rows.rest));
    });
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::upsample_bilinear2d.vec_out", portable_upsample_bilinear2d);

Error portable_upsample_bilinear2d_aa(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const Ints size = call.ints(1);
  const bool corners = call.boolean(2);
  const bool scaled = !call.is_none(3) && !call.is_none(4);
  const double by_rows = scaled ? call.real(3) : 0.0, by_columns = scaled ? call.real(4) : 0.0;
  Tensor& out = call.tensor(5);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(input.rank == 4 && out.rank == 4, "the input or out is no image");
  HIL_TRY(require_same_type(ctx, {&input, &out}));
  HIL_REQUIRE(size.size() == kSides && size[0] > 0 && size[1] > 0,
              "output_size is not that of an image");
  Shape shape = Shape::of(input);
  shape.sizes[2] = size[0];
  shape.sizes[3] = size[1];
  HIL_TRY(give_shape(ctx, out, shape));
  HIL_TRY(require_same_order(ctx, {&input, &out}));
  HIL_TRY(require_type(ctx, input, kReals));
  const Planes in(input, kSides, true), to(out, kSides, true);
  const auto factor = [](int64_t made, int64_t own) {
    return static_cast<double>(made) / static_cast<double>(own);
  };
  const float rows =
      scale_of(in.height, to.height, corners, scaled ? by_rows : factor(to.height, in.height));
  const float columns =
      scale_of(in.width, to.width, corners, scaled ? by_columns : factor(to.width, in.width));
  for_type(input.type, [&](auto zero) {
    using E = decltype(zero);
    using W = Product<E>;
    each_pixel<E>(to, out, [&](int64_t b, int64_t c, int64_t y, int64_t x) {
      const Filter down(rows, y, in.height), across(columns, x, in.width);
      E sum{};
      for (int64_t row = down.first; row < down.last; ++row) {
        for (int64_t column = across.first; column < across.last; ++column) {
          W part = static_cast<W>(input.as<E>()[in.at(b, c, row, column)]);
          part = part * static_cast<W>(down.weight(row)) * static_cast<W>(across.weight(column));
          if constexpr (kIsShort<E>) part = kept<E>(part);
          sum = element_from<E>(static_cast<W>(sum) + part);
        }
      }
      return sum;
    });
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::_upsample_bilinear2d_aa.out", portable_upsample_bilinear2d_aa);

Error portable_grid_sampler_2d(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const Tensor& grid = call.tensor(1);
  const int64_t mode = call.integer(2), padding = call.integer(3);
  const bool corners = call.boolean(4);
  Tensor& out = call.tensor(5);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(
      input.rank == 4 && grid.rank == 4 && grid.sizes[3] == 2 && input.sizes[0] == grid.sizes[0],
      "input and grid are not images and places in them");
  HIL_TRY(require_plain(ctx, input));
  HIL_TRY(require_same_type(ctx, {&input, &grid, &out}));
  Shape shape = Shape::of(input);
  shape.sizes[2] = grid.sizes[1];
  shape.sizes[3] = grid.sizes[2];
  HIL_TRY(give_shape(ctx, out, shape));
  HIL_REQUIRE(mode >= 0 && mode <= 2, "there is no such interpolation");
  HIL_REQUIRE(padding >= 0 && padding <= 2, "there is no such padding");
  HIL_TRY(require_type(ctx, input, kFloats));  // torch has no images of integers here
  const Planes in(input, kSides, true), to(out, kSides, true);
  const Steps steps = steps_of(grid);
  for_float_type(input.type, [&](auto zero) {
    using E = decltype(zero);
    const auto way = static_cast<Padding>(padding);
    const Sample<E> sample{in, input, {in.height, way, corners}, {in.width, way, corners}};
    each_pixel<E>(to, out, [&](int64_t b, int64_t c, int64_t y, int64_t x) {
      const int64_t at = b * steps.of[0] + y * steps.of[1] + x * steps.of[2];
      const auto grid_x = static_cast<Wide<E>>(grid.as<E>()[at]);
      const auto grid_y = static_cast<Wide<E>>(grid.as<E>()[at + steps.of[3]]);
      switch (static_cast<Mode>(mode)) {
        case Mode::kBilinear:
          return static_cast<E>(sample.bilinear(b, c, grid_x, grid_y));
        case Mode::kNearest:
          return static_cast<E>(sample.nearest(b, c, grid_x, grid_y));
        default:
          return static_cast<E>(sample.bicubic(b, c, grid_x, grid_y));
      }
    });
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::grid_sampler_2d.out", portable_grid_sampler_2d);

}  // namespace hil
