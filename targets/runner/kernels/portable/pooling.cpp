// Pools of images, and the gradient of one.
#include <cmath>
#include <limits>

#include "kernels/operator.h"
#include "kernels/portable/elements.h"
#include "kernels/portable/windows.h"

namespace hil {

namespace {

constexpr size_t kSides = 2;

Error require_image(KernelContext& ctx, const Tensor& t) {
  HIL_REQUIRE(t.rank == 3 || t.rank == 4, "self is no image");
  for (size_t d = t.rank - 3u; d < t.rank; ++d) {
    HIL_REQUIRE(t.sizes[d] > 0, "the image is empty");
  }
  return Error::Ok;
}

/// Arguments 1 to 3 of a pool: kernel size, strides and padding; the dilations are another one.
struct Pool {
  Side rows = {}, columns = {};
  Shape shape;

  Error read(const Call& call, const Tensor& self, const Ints& dilation, bool ceil_mode) {
    KernelContext& ctx = call.ctx;
    const Ints kernel = call.ints(1), stride = call.ints(2), padding = call.ints(3);
    if (!call.ok()) return ctx.argument_error();
    HIL_TRY(require_plain_or_channels_inner(ctx, self));
    HIL_TRY(require_image(ctx, self));
    HIL_TRY(require_sides(ctx, kernel, kSides, 1, false, "the kernel has no such size"));
    HIL_TRY(require_sides(ctx, stride, kSides, 1, true, "there is no such stride"));
    HIL_TRY(require_sides(ctx, padding, kSides, 0, false, "there is no such padding"));
    HIL_TRY(require_sides(ctx, dilation, kSides, 1, true, "there is no such dilation"));
    shape = Shape::of(self);
    Side* sides[kSides] = {&rows, &columns};
    for (size_t i = 0; i < kSides; ++i) {
      const size_t dim = self.rank - kSides + i;
      const int64_t size = kernel.at(i, 1);
      HIL_REQUIRE(padding.at(i, 0) <= size / 2, "padding is more than half of the kernel");
      Side& side = *sides[i];
      side = {self.sizes[dim], 0, size, stride.at(i, size), padding.at(i, 0), dilation.at(i, 1)};
      side.out = shape.sizes[dim] = positions(side, ceil_mode);
    }
    return require_extents(ctx, shape, kSides);
  }
};

/// Part of a window along one side. `whole` counts the padding, too.
struct Reach {
  int64_t first, last, whole;

  Reach(const Side& side, int64_t position) {
    const int64_t start = position * side.stride - side.padding;
    const int64_t end = std::min(start + side.kernel, side.in + side.padding);
    first = std::max(start, int64_t{0});
    last = std::min(end, side.in);
    whole = end - start;
  }
  int64_t size() const { return last - first; }
};

/// Calls with each window that touches the image and the places of its elements in order:
/// begin(output place), take(input place, number in the image), end(rows, columns).
template <typename Begin, typename Take, typename End>
void each_window(const Pool& pool, const Planes& in, const Planes& out, Begin begin, Take take,
                 End end) {
  for (int64_t b = 0; b < in.batches; ++b) {
    for (int64_t c = 0; c < in.channels; ++c) {
      for (int64_t y = 0; y < pool.rows.out; ++y) {
        const Reach rows(pool.rows, y);
        for (int64_t x = 0; x < pool.columns.out; ++x) {
          const Reach columns(pool.columns, x);
          if (rows.size() <= 0 || columns.size() <= 0) continue;
          begin(out.at(b, c, y, x));
          for (int64_t i = 0; i < pool.rows.kernel; ++i) {
            const int64_t row = pool.rows.at(y, i);
            if (!pool.rows.has(row)) continue;
            for (int64_t k = 0; k < pool.columns.kernel; ++k) {
              const int64_t column = pool.columns.at(x, k);
              if (!pool.columns.has(column)) continue;
              take(in.at(b, c, row, column), row * in.width + column);
            }
          }
          end(rows, columns);
        }
      }
    }
  }
}

template <typename E>
E mean_of(E sum, int64_t count) {
  if constexpr (std::is_integral<E>::value) {
    return sum / static_cast<E>(count);
  } else {
    const auto divisor = static_cast<Wide<E>>(static_cast<E>(static_cast<Wide<E>>(count)));
    return static_cast<E>(static_cast<Wide<E>>(sum) / divisor);
  }
}

/// Calls f with a zero of the element type: floats and Long.
template <typename F>
void for_float_or_long(ScalarType type, F f) {
  if (type == ScalarType::Long) {
    f(int64_t{});
  } else {
    for_float_type(type, f);
  }
}

constexpr TypeSet kFloatsAndLong = kFloats | only(ScalarType::Long);

/// Where part `i` of `parts` begins, in float as ExecuTorch divides.
int64_t part_start(int64_t i, int64_t parts, int64_t size) {
  return static_cast<int64_t>(std::floor(static_cast<float>(i * size) / static_cast<float>(parts)));
}
int64_t part_end(int64_t i, int64_t parts, int64_t size) {
  return static_cast<int64_t>(
      std::ceil(static_cast<float>((i + 1) * size) / static_cast<float>(parts)));
}

}  // namespace

Error portable_avg_pool2d(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const bool ceil_mode = call.boolean(4), with_padding = call.boolean(5);
  const bool divided = !call.is_none(6);
  const int64_t divisor = call.integer_or(6, 0);
  Tensor& out = call.tensor(7);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  Pool pool;
  HIL_TRY(pool.read(call, self, Ints(), ceil_mode));
  HIL_REQUIRE(!divided || divisor != 0, "divisor_override is 0");
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(require_plain(ctx, self));
  HIL_TRY(give_shape(ctx, out, pool.shape));
  HIL_TRY(require_type(ctx, self, kFloatsAndLong));
  const bool batched = self.rank == 4;
  for_float_or_long(self.type, [&](auto zero) {
    using E = decltype(zero);
    E sum{};
    size_t place = 0;
    bool any = false;
    each_window(
        pool, Planes(self, kSides, batched), Planes(out, kSides, batched),
        [&](size_t at) {
          place = at;
          sum = E{};
          any = false;
        },
        [&](size_t at, int64_t) {
          sum = any ? plus(self.as<E>()[at], sum) : self.as<E>()[at];
          any = true;
        },
        [&](const Reach& rows, const Reach& columns) {
          const int64_t count = with_padding ? rows.whole * columns.whole
                                             : rows.size() * columns.size();
          out.as<E>()[place] = mean_of(sum, divided ? divisor : count);
        });
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::avg_pool2d.out", portable_avg_pool2d);

Error portable_max_pool2d(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints dilation = call.ints(4);
  const bool ceil_mode = call.boolean(5);
  Tensor& out = call.tensor(6);
  Tensor& indices = call.tensor(7);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_type(ctx, indices, only(ScalarType::Long)));
  HIL_TRY(require_plain_or_channels_inner(ctx, out));
  Pool pool;
  HIL_TRY(pool.read(call, self, dilation, ceil_mode));
  HIL_TRY(give_shape(ctx, out, pool.shape));
  HIL_TRY(give_shape(ctx, indices, pool.shape));
  HIL_TRY(require_type(ctx, self, kReals));
  const bool batched = self.rank == 4;
  for_type(self.type, [&](auto zero) {
    using E = decltype(zero);
    E most{};
    int64_t number = 0;
    size_t place = 0;
    bool any = false;
    each_window(
        pool, Planes(self, kSides, batched), Planes(out, kSides, batched),
        [&](size_t at) {
          place = at;
          most = E{};
          number = 0;
          any = false;
        },
        [&](size_t at, int64_t own) {
          const E value = self.as<E>()[at];
          if (any && !(value > most)) return;
          most = value;
          number = own;
          any = true;
        },
        [&](const Reach&, const Reach&) {
          out.as<E>()[place] = most;
          indices.as<int64_t>()[place] = number;
        });
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::max_pool2d_with_indices.out", portable_max_pool2d);

Error portable_max_pool2d_backward(KernelContext& ctx, Args args) {
  const Call call{ctx, args.size() < 2 ? Args() : Args(args.data() + 1, args.size() - 1)};
  const Tensor& gradient = ctx.tensor(args, 0);
  const Tensor& self = call.tensor(0);
  const Ints dilation = call.ints(4);
  const bool ceil_mode = call.boolean(5);
  const Tensor& indices = call.tensor(6);
  Tensor& out = call.tensor(7);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&gradient, &self, &out}));
  HIL_TRY(require_type(ctx, indices, only(ScalarType::Long)));
  HIL_TRY(require_plain_or_channels_inner(ctx, gradient));
  Pool pool;
  HIL_TRY(pool.read(call, self, dilation, ceil_mode));
  HIL_REQUIRE(has_shape(gradient, pool.shape), "the gradient has another shape");
  HIL_REQUIRE(indices.numel == gradient.numel, "there are more or fewer indices than gradients");
  HIL_TRY(give_shape_of(ctx, out, self));
  HIL_TRY(require_type(ctx, self, kFloats));
  const size_t plane = static_cast<size_t>(pool.rows.in * pool.columns.in);
  const size_t windows = static_cast<size_t>(pool.rows.out * pool.columns.out);
  for (size_t i = 0; i < indices.numel; ++i) {
    const int64_t index = indices.as<int64_t>()[i];
    HIL_REQUIRE(index >= -1 && index < static_cast<int64_t>(plane), "an index is outside self");
  }
  for_float_type(self.type, [&](auto zero) {
    using E = decltype(zero);
    for (size_t i = 0; i < out.numel; ++i) out.as<E>()[i] = E{};
    for (size_t i = 0; i < gradient.numel; ++i) {
      const int64_t index = indices.as<int64_t>()[i];
      if (index < 0) continue;
      E& target = out.as<E>()[i / windows * plane + static_cast<size_t>(index)];
      target = plus(target, gradient.as<E>()[i]);
    }
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::max_pool2d_with_indices_backward.grad_input", portable_max_pool2d_backward);

// Of any dim order: ExecuTorch's takes a plain one alone.
Error portable_adaptive_avg_pool2d(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints size = call.ints(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_image(ctx, self));
  HIL_REQUIRE(size.size() == kSides && size[0] > 0 && size[1] > 0,
              "output_size is not that of an image");
  Shape shape = Shape::of(self);
  shape.sizes[shape.rank - 2] = size[0];
  shape.sizes[shape.rank - 1] = size[1];
  HIL_TRY(give_shape(ctx, out, shape));
  HIL_TRY(require_type(ctx, self, kFloatsAndLong));
  const Planes in(self, kSides, self.rank == 4), to(out, kSides, self.rank == 4);
  for_float_or_long(self.type, [&](auto zero) {
    using E = decltype(zero);
    for (int64_t i = 0; i < static_cast<int64_t>(out.numel); ++i) {
      const int64_t x = i % to.width, y = i / to.width % to.height;
      const int64_t plane = i / (to.width * to.height);
      const int64_t c = plane % to.channels, b = plane / to.channels;
      const int64_t top = part_start(y, to.height, in.height);
      const int64_t bottom = part_end(y, to.height, in.height);
      const int64_t left = part_start(x, to.width, in.width);
      const int64_t right = part_end(x, to.width, in.width);
      float sum = 0.0f;
      for (int64_t row = top; row < bottom; ++row) {
        for (int64_t column = left; column < right; ++column) {
          const E value = self.as<E>()[in.at(b, c, row, column)];
          if constexpr (std::is_same<E, double>::value) {
            sum = static_cast<float>(static_cast<double>(sum) + value);
          } else {
            sum += static_cast<float>(value);
          }
        }
      }
      const float count = static_cast<float>((bottom - top) * (right - left));
      out.as<E>()[to.at(b, c, y, x)] = static_cast<E>(sum / count);
    }
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::_adaptive_avg_pool2d.out", portable_adaptive_avg_pool2d);

}  // namespace hil
