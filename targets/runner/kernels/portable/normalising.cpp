// Norms and softmax, in the order of operations of ExecuTorch's portable kernels.
#include <cmath>

#include "kernels/exponential.h"
#include "kernels/layout.h"
#include "kernels/operator.h"
#include "kernels/portable/call.h"
#include "kernels/portable/curves.h"

namespace hil {

namespace {

/// A parameter of a norm, or none.
Error require_parameter(KernelContext& ctx, const Tensor& input, const Tensor* t, int64_t count) {
  if (t == nullptr) return Error::Ok;
  HIL_TRY(require_same_type(ctx, {&input, t}));
  HIL_REQUIRE(t->rank == 1 && t->sizes[0] == count, "a parameter is not a vector of channels");
  return Error::Ok;
}

template <typename E>
Wide<E> element(const Tensor* t, size_t i, Wide<E> otherwise) {
  return t == nullptr ? otherwise : static_cast<Wide<E>>(t->as<E>()[i]);
}

/// One value of a batch norm.
template <typename E>
E normalised(Wide<E> x, Wide<E> mean, Wide<E> inverse, Wide<E> weight, Wide<E> bias) {
  const Wide<E> centred = kept<E>(x - mean);
  return static_cast<E>(kept<E>(kept<E>(centred * inverse) * weight) + bias);
}

/// The inverse deviation, in double and then in E.
template <typename E>
Wide<E> inverse_deviation(Wide<E> variance, double eps) {
  return kept<E>(static_cast<Wide<E>>(1.0 / std::sqrt(static_cast<double>(variance) + eps)));
}

struct BatchNorm {
  const Tensor& input;
  const Tensor *weight, *bias, *mean, *variance;
  double eps;
  Tensor& out;
  Tensor *saved_mean, *saved_inverse;

  /// With the statistics that were given. Of a tensor of any dim order, which ExecuTorch's kernel
  /// refuses: a convolution's result on a Cortex-M is channels-last.
  template <typename E>
  void apply() const {
    const size_t channels = static_cast<size_t>(input.sizes[1]);
    const size_t width = static_cast<size_t>(strides_of(input).step[1]);
    for (size_t i = 0; i < input.numel; ++i) {
      const size_t c = i / width % channels;
      const Wide<E> inverse = inverse_deviation<E>(variance->as<E>()[c], eps);
      out.as<E>()[i] = normalised<E>(input.as<E>()[i], mean->as<E>()[c], inverse,
                                     element<E>(weight, c, 1), element<E>(bias, c, 0));
    }
  }

  /// With the input's own. Sums are of float32 for each image, and of E for all.
  template <typename E>
  void measure() const {
    using W = Wide<E>;
    const size_t channels = static_cast<size_t>(input.sizes[1]), inner = trailing(input, 1);
    const size_t images = static_cast<size_t>(input.sizes[0]);
    const W count = kept<E>(static_cast<W>(images * inner));
    for (size_t c = 0; c < channels; ++c) {
      W sum{}, squares{};
      for (size_t n = 0; n < images; ++n) {
        const E* x = input.as<E>() + (n * channels + c) * inner;
        float part = 0.0f, part_squares = 0.0f;
        for (size_t i = 0; i < inner; ++i) {
          part = static_cast<float>(static_cast<W>(part) + static_cast<W>(x[i]));
          part_squares =
              static_cast<float>(static_cast<W>(part_squares) +
                                 static_cast<W>(static_cast<float>(x[i])) * static_cast<W>(x[i]));
        }
        sum = kept<E>(sum + kept<E>(static_cast<W>(part)));
        squares = kept<E>(squares + kept<E>(static_cast<W>(part_squares)));
      }
      const W middle = kept<E>(sum / count);
      const W spread = kept<E>(kept<E>(squares / count) - kept<E>(middle * middle));
      const W inverse = inverse_deviation<E>(spread, eps);
      saved_mean->as<E>()[c] = static_cast<E>(middle);
      saved_inverse->as<E>()[c] = static_cast<E>(inverse);
      for (size_t n = 0; n < images; ++n) {
        const size_t first = (n * channels + c) * inner;
        for (size_t i = first; i < first + inner; ++i) {
          out.as<E>()[i] = normalised<E>(input.as<E>()[i], middle, inverse,
                                         element<E>(weight, c, 1), element<E>(bias, c, 0));
        }
      }
    }
  }
};

/// Of arguments (input, weight?, bias?, mean, variance, ..., eps at `eps`, three outputs).
Error batch_norm(KernelContext& ctx, Args args, size_t eps) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const BatchNorm norm{input,
                       call.tensor_or_none(1),
                       call.tensor_or_none(2),
                       &call.tensor(3),
                       &call.tensor(4),
                       call.real(eps),
                       call.tensor(eps + 1),
                       &call.tensor(eps + 2),
                       &call.tensor(eps + 3)};
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, input, kFloats));
  HIL_TRY(require_same_type(ctx, {&input, &norm.out, norm.saved_mean, norm.saved_inverse}));
  HIL_REQUIRE(input.rank >= 2, "input has no channels");
  HIL_REQUIRE(same_layout(input, norm.out), "input and out differ in shape or dim order");
  for (const Tensor* t : {norm.weight, norm.bias, norm.mean, norm.variance}) {
    HIL_TRY(require_parameter(ctx, input, t, input.sizes[1]));
  }
  Shape empty;
  empty.add(0);
  HIL_TRY(give_shape(ctx, *norm.saved_mean, empty));
  HIL_TRY(give_shape(ctx, *norm.saved_inverse, empty));
  for_float_type(input.type, [&](auto zero) { norm.apply<decltype(zero)>(); });
  return Error::Ok;
}

struct GroupNorm {
  const Tensor& input;
  const Tensor *weight, *bias;
  size_t groups, channels, inner, images;  // channels of a group
  double eps;
  Tensor &out, &means, &inverses;

  template <typename E>
  void apply() const {
    const size_t width = channels * inner;
    for (size_t i = 0; i < images * groups; ++i) {
      if (width == 0) {
        means.as<E>()[i] = E(0.0f);
        inverses.as<E>()[i] = E(NAN);
        continue;
      }
      const E* x = input.as<E>() + i * width;
      float sum = 0.0f, squares = 0.0f;
      for (size_t k = 0; k < width; ++k) {
        const Wide<E> value = x[k];
        sum = static_cast<float>(static_cast<Wide<E>>(sum) + value);
        squares = static_cast<float>(static_cast<Wide<E>>(squares) +
                                     static_cast<Wide<E>>(static_cast<float>(value)) * value);
      }
      const double count = static_cast<double>(width), mean = static_cast<double>(sum) / count;
      const double variance = static_cast<double>(squares) / count - mean * mean;
      const double inverse = 1.0 / std::sqrt(variance + eps);
      for (size_t k = 0; k < width; ++k) {
        const size_t c = i % groups * channels + k / inner;
        const double value = static_cast<double>(x[k]);
        const double scale = inverse * static_cast<double>(element<E>(weight, c, 1));
        const double beta = -scale * mean + static_cast<double>(element<E>(bias, c, 0));
        const bool plain = weight == nullptr && bias == nullptr;
        out.as<E>()[i * width + k] = static_cast<E>(
            static_cast<Wide<E>>(plain ? (value - mean) * inverse : scale * value + beta));
      }
      means.as<E>()[i] = static_cast<E>(static_cast<Wide<E>>(mean));
      inverses.as<E>()[i] = static_cast<E>(static_cast<Wide<E>>(inverse));
    }
  }
};

struct LayerNorm {
  const Tensor& input;
  const Tensor *weight, *bias;
  size_t rows, width;
  double eps;
  Tensor &out, &means, &inverses;

  template <typename E>
  void apply() const {
    using W = Wide<E>;
    for (size_t row = 0; row < rows; ++row) {
      const E* x = input.as<E>() + row * width;
      if (width == 0) {
        means.as<E>()[row] = E(0.0f);
        inverses.as<E>()[row] = E(NAN);
        continue;
      }
      float sum = 0.0f, squares = 0.0f;
      for (size_t i = 0; i < width; ++i) {
        const W value = x[i];
        sum = static_cast<float>(static_cast<W>(sum) + value);
        squares = static_cast<float>(static_cast<W>(squares) +
                                     static_cast<W>(static_cast<float>(value)) * value);
      }
      const W count = kept<E>(static_cast<W>(width));
      const W mean = kept<E>(kept<E>(static_cast<W>(sum)) / count);
      const W square = kept<E>(kept<E>(static_cast<W>(squares)) / count);
      const W variance = kept<E>(square - kept<E>(mean * mean));
      const W deviation = kept<E>(std::sqrt(kept<E>(variance + kept<E>(static_cast<W>(eps)))));
      for (size_t i = 0; i < width; ++i) {
        const W normal = kept<E>(kept<E>(static_cast<W>(x[i]) - mean) / deviation);
        const W scaled = kept<E>(normal * element<E>(weight, i, 1));
        out.as<E>()[row * width + i] = static_cast<E>(scaled + element<E>(bias, i, 0));
      }
      means.as<E>()[row] = static_cast<E>(mean);
      inverses.as<E>()[row] = static_cast<E>(static_cast<W>(1) / deviation);
    }
  }
};

float power(float x) { return decay(x); }  // of x <= 0, the same bits in every build
double power(double x) { return std::exp(x); }
float log_of(float x) { return x == x ? static_cast<float>(logarithm(x)) : x; }
double log_of(double x) { return std::log(x); }

/// Softmax, or its logarithm, of one line of elements.
template <typename E>
void softmax_line(const E* in, E* out, size_t count, size_t step, bool is_log) {
  using W = Wide<E>;
  W top = in[0];
  for (size_t i = 1; i < count; ++i) {
    const W value = in[i * step];
    if (!(value < top)) top = value;  // as std::max(value, top)
  }
  W sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const W value = power(static_cast<W>(in[i * step]) - top);
    sum = i == 0 ? value : sum + value;
  }
  const W log_sum = is_log ? log_of(sum) : W{};
  for (size_t i = 0; i < count; ++i) {
    const W value = static_cast<W>(in[i * step]) - top;
    out[i * step] = static_cast<E>(is_log ? value - log_sum : power(value) / sum);
  }
}

Error softmax(KernelContext& ctx, Args args, bool is_log) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1);
  const bool half_to_float = call.boolean(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(!half_to_float, "a float32 result of 16-bit floats is not supported");
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_type(ctx, self, kFloats));
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  HIL_TRY(require_plain_or_channels_inner(ctx, self));
  HIL_TRY(give_shape_of(ctx, out, self));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  if (self.numel == 0) return Error::Ok;
  const size_t count = static_cast<size_t>(extent(self, axis));
  const size_t step = self.rank == 0 ? 1 : static_cast<size_t>(steps_of(self).of[axis]);
  for_float_type(self.type, [&](auto zero) {
    using E = decltype(zero);
    for (size_t line = 0; line < self.numel / count; ++line) {
      const size_t first = line / step * step * count + line % step;
      softmax_line(self.as<E>() + first, out.as<E>() + first, count, step, is_log);
    }
  });
  return Error::Ok;
}

}  // namespace

Error portable_batch_norm_no_training(KernelContext& ctx, Args args) {
  return batch_norm(ctx, args, 6);
}
HIL_OPERATOR("aten::_native_batch_norm_legit_no_training.out", portable_batch_norm_no_training);

Error portable_batch_norm(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const bool trains = call.boolean(5);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(!trains, "training is not supported");
  return batch_norm(ctx, args, 7);
}
HIL_OPERATOR("aten::_native_batch_norm_legit.out", portable_batch_norm);

Error portable_batch_norm_no_stats(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const BatchNorm norm{
      input,        call.tensor_or_none(1), call.tensor_or_none(2), nullptr,        nullptr,
      call.real(5), call.tensor(6),         &call.tensor(7),        &call.tensor(8)};
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, input, kFloats));
  HIL_TRY(require_same_type(ctx, {&input, &norm.out, norm.saved_mean, norm.saved_inverse}));
  HIL_REQUIRE(input.rank >= 2, "input has no channels");
  HIL_TRY(require_plain(ctx, input));
  HIL_TRY(require_same_order(ctx, {&input, &norm.out}));
  for (const Tensor* t : {norm.weight, norm.bias}) {
    HIL_TRY(require_parameter(ctx, input, t, input.sizes[1]));
  }
  HIL_TRY(give_shape_of(ctx, norm.out, input));
  Shape channels;
  channels.add(input.sizes[1]);
  HIL_TRY(give_shape(ctx, *norm.saved_mean, channels));
  HIL_TRY(give_shape(ctx, *norm.saved_inverse, channels));
  for_float_type(input.type, [&](auto zero) { norm.measure<decltype(zero)>(); });
  return Error::Ok;
}
HIL_OPERATOR("aten::_native_batch_norm_legit.no_stats_out", portable_batch_norm_no_stats);

Error portable_native_group_norm(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const Tensor* weight = call.tensor_or_none(1);
  const Tensor* bias = call.tensor_or_none(2);
  const int64_t images = call.integer(3), channels = call.integer(4), inner = call.integer(5);
  const int64_t groups = call.integer(6);
  const double eps = call.real(7);
  Tensor& out = call.tensor(8);
  Tensor& means = call.tensor(9);
  Tensor& inverses = call.tensor(10);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, input, kFloats));
  HIL_TRY(require_same_type(ctx, {&input, &out, &means, &inverses}));
  HIL_REQUIRE(input.rank >= 2 && input.sizes[0] == images && input.sizes[1] == channels,
              "input does not have these images and channels");
  HIL_REQUIRE(inner >= 0 && static_cast<int64_t>(input.numel) == images * channels * inner,
              "input does not have these elements");
  HIL_REQUIRE(groups > 0 && channels % groups == 0, "the channels do not divide into the groups");
  HIL_TRY(require_parameter(ctx, input, weight, channels));
  HIL_TRY(require_parameter(ctx, input, bias, channels));
  HIL_TRY(give_shape_of(ctx, out, input));
  Shape statistics;
  statistics.add(images);
  statistics.add(groups);
  HIL_TRY(give_shape(ctx, means, statistics));
  HIL_TRY(give_shape(ctx, inverses, statistics));
  HIL_TRY(require_plain(ctx, input));
  HIL_TRY(require_same_order(ctx, {&input, &out, &means, &inverses}));
  const GroupNorm norm{input,
                       weight,
                       bias,
                       static_cast<size_t>(groups),
                       static_cast<size_t>(channels / groups),
                       static_cast<size_t>(inner),
                       static_cast<size_t>(images),
                       eps,
                       out,
                       means,
                       inverses};
  for_float_type(input.type, [&](auto zero) { norm.apply<decltype(zero)>(); });
  return Error::Ok;
}
HIL_OPERATOR("aten::native_group_norm.out", portable_native_group_norm);

Error portable_native_layer_norm(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const Ints shape = call.ints(1);
  const Tensor* weight = call.tensor_or_none(2);
  const Tensor* bias = call.tensor_or_none(3);
  const double eps = call.real(4);
  Tensor& out = call.tensor(5);
  Tensor& means = call.tensor(6);
  Tensor& inverses = call.tensor(7);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, input, kFloats));
  HIL_TRY(require_same_type(ctx, {&input, weight, bias, &out, &means, &inverses}));
  HIL_REQUIRE(shape.size() >= 1 && shape.size() <= input.rank,
              "normalized_shape is not the end of input's shape");
  const size_t first = input.rank - shape.size();
  Shape statistics = Shape::of(input), tail;
  for (size_t i = 0; i < shape.size(); ++i) {
    HIL_REQUIRE(shape[i] == input.sizes[first + i],
                "normalized_shape is not the end of input's shape");
    statistics.sizes[first + i] = 1;
    tail.add(shape[i]);
  }
  for (const Tensor* t : {weight, bias}) {
    HIL_REQUIRE(t == nullptr || has_shape(*t, tail), "a parameter has another shape");
  }
  HIL_TRY(give_shape_of(ctx, out, input));
  HIL_TRY(give_shape(ctx, means, statistics));
  HIL_TRY(give_shape(ctx, inverses, statistics));
  HIL_TRY(require_plain(ctx, input));
  HIL_TRY(require_same_order(ctx, {&input, &out, &means, &inverses}));
  const LayerNorm norm{input, weight, bias,    leading(input, first), tail.numel(), eps,
                       out,   means,  inverses};
  for_float_type(input.type, [&](auto zero) { norm.apply<decltype(zero)>(); });
  return Error::Ok;
}
HIL_OPERATOR("aten::native_layer_norm.out", portable_native_layer_norm);

Error portable_softmax(KernelContext& ctx, Args args) { return softmax(ctx, args, false); }
HIL_OPERATOR("aten::_softmax.out", portable_softmax);

Error portable_log_softmax(KernelContext& ctx, Args args) { return softmax(ctx, args, true); }
HIL_OPERATOR("aten::_log_softmax.out", portable_log_softmax);

}  // namespace hil
