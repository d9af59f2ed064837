// Convolutions of rows and images, transposed ones, and the gradients. Sums go in order, in the
// element type.
#include "kernels/operator.h"
#include "kernels/portable/elements.h"
#include "kernels/portable/windows.h"

namespace hil {

namespace {

/// Argument `i`, a list of bools.
Span<const uint8_t> bools_of(const Call& call, size_t i) {
  if (i < call.args.size() && call.args[i]->tag == Tag::BoolList) return call.args[i]->bools;
  (void)call.ints(i);  // there is none: a bad argument
  return Span<const uint8_t>();
}

/// Input, weights, and where the windows are. Weights of a transposed convolution are those of the
/// convolution that it turns around.
struct Convolution {
  const Tensor& input;
  const Tensor& weight;
  bool transposed = false;
  int64_t groups = 1;
  size_t sides = 2;
  Side rows = {1, 1, 1, 1, 0, 1}, columns = {1, 1, 1, 1, 0, 1};
  Shape shape = {};

  /// Arguments `first` and following: strides, padding, dilations, transposed, output padding,
  /// groups. `out` is the output, or its gradient.
  Error read(const Call& call, size_t first, const Tensor* bias, const Tensor& out);

  int64_t per_group() const { return weight.sizes[1]; }
  int64_t out_channels() const { return transposed ? groups * weight.sizes[1] : weight.sizes[0]; }
};

Error Convolution::read(const Call& call, size_t first, const Tensor* bias, const Tensor& out) {
  KernelContext& ctx = call.ctx;
  const Ints stride = call.ints(first), padding = call.ints(first + 1);
  const Ints dilation = call.ints(first + 2), added = call.ints(first + 4);
  transposed = call.boolean(first + 3);
  groups = call.integer(first + 5);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&input, &weight, &out}));
  HIL_TRY(require_plain_or_channels_inner(ctx, input));
  HIL_TRY(require_plain_or_channels_inner(ctx, out));
  if (!transposed) HIL_TRY(require_plain_or_channels_inner(ctx, weight));
  HIL_REQUIRE(input.rank == 3 || input.rank == 4, "input is neither rows nor images");
  HIL_REQUIRE(weight.rank == input.rank && out.rank == input.rank,
              "input, weight and out differ in their number of dimensions");
  sides = input.rank - 2u;
  HIL_TRY(require_sides(ctx, stride, sides, 1, false, "there is no such stride"));
  HIL_TRY(require_sides(ctx, padding, sides, 0, false, "there is no such padding"));
  HIL_TRY(require_sides(ctx, dilation, sides, 1, false, "there is no such dilation"));
  if (transposed) {
    HIL_TRY(require_sides(ctx, added, sides, 0, false, "there is no such output_padding"));
  }
  HIL_REQUIRE(groups > 0 && weight.sizes[0] >= groups && weight.sizes[0] % groups == 0,
              "the groups do not divide the channels");
  HIL_REQUIRE(input.sizes[1] == (transposed ? weight.sizes[0] : groups * weight.sizes[1]),
              "input has another number of channels than weight");
  HIL_REQUIRE(bias == nullptr || (bias->rank == 1 && bias->sizes[0] >= out_channels()),
              "bias has another number of channels");
  shape = Shape::of(input);
  shape.sizes[1] = input.sizes[1] == 0 ? 0 : out_channels();
  for (size_t i = 0; i < sides; ++i) {
    Side& side = i + 1 == sides ? columns : rows;
    const size_t dim = 2 + i;
    side = {input.sizes[dim], 0, weight.sizes[dim], stride.at(i, 1), padding.at(i, 0),
            dilation.at(i, 1)};
    if (transposed) {
      const int64_t more = added.at(i, 0);
      HIL_REQUIRE(more < side.stride || more < side.dilation,
                  "output_padding is not smaller than stride or dilation");
      side.out = (side.in - 1) * side.stride - 2 * side.padding +
                 side.dilation * (side.kernel - 1) + more + 1;
    } else {
      side.out = positions(side, false);
    }
    shape.sizes[dim] = side.out;
  }
  return require_extents(ctx, shape, sides);
}

/// Calls f(row, column) of the input for each element of a window that is inside it: `k` and `l`
/// are the element's place in the window.
template <typename F>
void each_inside(const Convolution& conv, int64_t y, int64_t x, F f) {
  for (int64_t k = 0; k < conv.rows.kernel; ++k) {
    const int64_t row = conv.rows.at(y, k);
    if (!conv.rows.has(row)) continue;
    for (int64_t l = 0; l < conv.columns.kernel; ++l) {
      const int64_t column = conv.columns.at(x, l);
      if (conv.columns.has(column)) f(row, column, k, l);
    }
  }
}

template <typename E>
void convolve(const Convolution& conv, const Tensor* bias, Tensor& out) {
  const Planes in(conv.input, conv.sides, true), to(out, conv.sides, true);
  const Planes weights(conv.weight, conv.sides, true);
  const E* values = conv.input.as<E>();
  const E* factors = conv.weight.as<E>();
  const int64_t per_group = conv.per_group(), made = to.channels / conv.groups;
  for (int64_t b = 0; b < to.batches; ++b) {
    for (int64_t c = 0; c < to.channels; ++c) {
      const int64_t first = c / made * per_group;
      for (int64_t y = 0; y < to.height; ++y) {
        for (int64_t x = 0; x < to.width; ++x) {
          E sum{};
          for (int64_t i = 0; i < per_group; ++i) {
            each_inside(conv, y, x, [&](int64_t row, int64_t column, int64_t k, int64_t l) {
              sum = times_plus(values[in.at(b, first + i, row, column)],
                               factors[weights.at(c, i, k, l)], sum);
            });
          }
          if (bias != nullptr) sum = plus(sum, element_as<E>(*bias, static_cast<size_t>(c)));
          out.as<E>()[to.at(b, c, y, x)] = sum;
        }
      }
    }
  }
}

template <typename E>
void convolve_transposed(const Convolution& conv, const Tensor* bias, Tensor& out) {
  const Planes in(conv.input, conv.sides, true), to(out, conv.sides, true);
  const Planes weights(conv.weight, conv.sides, true);
  const E* values = conv.input.as<E>();
  const E* factors = conv.weight.as<E>();
  E* target = out.as<E>();
  // The windows are those of the output, which is what the sides call `in`.
  Convolution turned = conv;
  std::swap(turned.rows.in, turned.rows.out);
  std::swap(turned.columns.in, turned.columns.out);
  const int64_t made = conv.per_group(), per_group = in.channels / conv.groups;
  for (int64_t b = 0; b < to.batches; ++b) {
    for (int64_t c = 0; c < to.channels; ++c) {
      const E start = bias == nullptr ? E{} : element_as<E>(*bias, static_cast<size_t>(c));
      for (int64_t y = 0; y < to.height; ++y) {
        for (int64_t x = 0; x < to.width; ++x) target[to.at(b, c, y, x)] = start;
      }
      const int64_t first = c / made * per_group;
      for (int64_t y = 0; y < in.height; ++y) {
        for (int64_t x = 0; x < in.width; ++x) {
          for (int64_t i = first; i < first + per_group; ++i) {
            const E value = values[in.at(b, i, y, x)];
            each_inside(turned, y, x, [&](int64_t row, int64_t column, int64_t k, int64_t l) {
              E& sum = target[to.at(b, c, row, column)];
              sum = times_plus(value, factors[weights.at(i, c % made, k, l)], sum);
            });
          }
        }
      }
    }
  }
}

/// The gradients of a convolution: those of input, weight and bias, null where not wanted.
struct Gradients {
  const Tensor& gradient;
  Tensor* input;
  Tensor* weight;
  Tensor* bias;
};

template <typename E>
void clear(Tensor* t) {
  for (size_t i = 0; t != nullptr && i < t->numel; ++i) t->as<E>()[i] = E{};
}

template <typename E>
void convolve_backward(const Convolution& conv, const Gradients& wanted) {
  const Planes in(conv.input, conv.sides, true), from(wanted.gradient, conv.sides, true);
  const Planes weights(conv.weight, conv.sides, true);
  const int64_t per_group = conv.per_group(), made = from.channels / conv.groups;
  clear<E>(wanted.input);
  clear<E>(wanted.weight);
  clear<E>(wanted.bias);
  for (int64_t b = 0; b < from.batches; ++b) {
    for (int64_t g = 0; g < conv.groups; ++g) {
      for (int64_t place = 0; place < from.height * from.width * made; ++place) {
        const int64_t c = place % made + g * made;
        const int64_t x = place / made % from.width, y = place / made / from.width;
        const E value = wanted.gradient.as<E>()[from.at(b, c, y, x)];
        if (wanted.bias != nullptr) {
          E& sum = wanted.bias->as<E>()[c];
          sum = plus(sum, value);
        }
        for (int64_t i = 0; i < per_group; ++i) {
          each_inside(conv, y, x, [&](int64_t row, int64_t column, int64_t k, int64_t l) {
            const size_t at = in.at(b, i + g * per_group, row, column);
            const size_t factor = weights.at(c, i, k, l);
            if (wanted.input != nullptr) {
              E& sum = wanted.input->as<E>()[at];
              sum = times_plus(value, conv.weight.as<E>()[factor], sum);
            }
            if (wanted.weight != nullptr) {
              E& sum = wanted.weight->as<E>()[factor];
              sum = times_plus(value, conv.input.as<E>()[at], sum);
            }
          });
        }
      }
    }
  }
}

}  // namespace

Error portable_convolution(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  Convolution conv{call.tensor(0), call.tensor(1)};
  const Tensor* bias = call.tensor_or_none(2);
  Tensor& out = call.tensor(9);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(conv.read(call, 3, bias, out));
  HIL_TRY(require_same_order(ctx, {&conv.input, &out}));
  HIL_TRY(give_shape(ctx, out, conv.shape));
  if (out.numel == 0) return Error::Ok;
  HIL_TRY(require_type(ctx, out, kReals));
  if (bias != nullptr) HIL_TRY(require_type(ctx, *bias, kReals));
  for_type(out.type, [&](auto zero) {
    using E = decltype(zero);
    if (conv.transposed) {
      convolve_transposed<E>(conv, bias, out);
    } else {
      convolve<E>(conv, bias, out);
    }
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::convolution.out", portable_convolution);

Error portable_convolution_backward(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& gradient = call.tensor(0);
  Convolution conv{call.tensor(1), call.tensor(2)};
  const Span<const uint8_t> mask = bools_of(call, 10);
  Tensor& input = call.tensor(11);
  Tensor& weight = call.tensor(12);
  Tensor& bias = call.tensor(13);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(mask.size() == 3, "output_mask has another length");
  const Gradients wanted = {gradient, mask[0] != 0 ? &input : nullptr,
                            mask[1] != 0 ? &weight : nullptr, mask[2] != 0 ? &bias : nullptr};
  HIL_TRY(require_same_type(
      ctx, {&conv.weight, &conv.input, &gradient, wanted.input, wanted.weight, wanted.bias}));
  HIL_TRY(conv.read(call, 4, nullptr, gradient));
  HIL_REQUIRE(!conv.transposed && conv.sides == 2,
              "there are gradients of images' convolutions alone");
  HIL_REQUIRE(has_shape(gradient, conv.shape), "the gradient has another shape");
  if (wanted.input != nullptr) HIL_TRY(give_shape_of(ctx, input, conv.input));
  if (wanted.weight != nullptr) HIL_TRY(give_shape_of(ctx, weight, conv.weight));
  if (wanted.bias != nullptr) {
    Shape channels;
    channels.add(conv.out_channels());
    HIL_TRY(give_shape(ctx, bias, channels));
  }
  HIL_TRY(require_type(ctx, conv.input, kFloats));
  for_float_type(conv.input.type,
                 [&](auto zero) { convolve_backward<decltype(zero)>(conv, wanted); });
  return Error::Ok;
}
HIL_OPERATOR("aten::convolution_backward.out", portable_convolution_backward);

}  // namespace hil
