// aten::convolution.out(input, weight, bias?, stride, padding, dilation, transposed,
//   output_padding, groups, out) of float tensors with one or two spatial dimensions (as many as
// ExecuTorch's own kernel takes), in any dim order. What models keep of it is small: this is the
// definition, not a fast kernel.
#include "kernels/checks.h"
#include "kernels/layout.h"
#include "kernels/operator.h"

namespace hil {

namespace {

constexpr size_t kSpatial = 2;
constexpr int32_t kMaxParameter = 1 << 16;

struct Dimension {
  int32_t in = 1, out = 1, kernel = 1, stride = 1, pad = 0, dilation = 1, extra = 0;
  int32_t in_step = 0, out_step = 0, weight_step = 0;

  int64_t expected(bool transposed) const {
    const int64_t span = int64_t{dilation} * (kernel - 1);
    // check_dimension() has refused a stride of 0, which clang-tidy does not see.
    return transposed ? (int64_t{in} - 1) * stride - 2 * int64_t{pad} + span + extra + 1
                      : (int64_t{in} + 2 * int64_t{pad} - span - 1) / stride + 1;  // NOLINT
  }
  /// The input position under a tap, or -1.
  int32_t source(bool transposed, int32_t position, int32_t tap) const {
    const int32_t at = transposed ? position + pad - tap * dilation
                                  : position * stride - pad + tap * dilation;
    if (at < 0 || (transposed && at % stride != 0)) return -1;
    const int32_t found = transposed ? at / stride : at;
    return found < in ? found : -1;
  }
};

struct Convolution {
  Dimension dims[kSpatial];  // the innermost last; unused ones are of extent 1
  bool transposed;
  int32_t batch, in_channels, out_channels, groups;
  int32_t in_batch, in_channel, out_batch, out_channel;  // steps
  int32_t weight_in, weight_out;                         // steps of channels within a group
  int32_t weight_group;                                  // step of groups
  const float *input, *weight, *bias;
  float* output;

  float at(const float* image, int32_t channel, const int32_t position[kSpatial]) const;
  void run() const;
};

float Convolution::at(const float* image, int32_t channel, const int32_t position[kSpatial]) const {
  const int32_t ins = in_channels / groups, outs = out_channels / groups;
  const int32_t group = channel / outs;
  const float* w = weight + group * weight_group + channel % outs * weight_out;
  const float* x = image + group * ins * in_channel;
  float sum = bias == nullptr ? 0.0f : bias[channel];
  const Dimension &height = dims[0], &width = dims[1];
  for (int32_t i = 0; i < height.kernel; ++i) {
    const int32_t iy = height.source(transposed, position[0], i);
    for (int32_t j = 0; iy >= 0 && j < width.kernel; ++j) {
      const int32_t ix = width.source(transposed, position[1], j);
      if (ix < 0) continue;
      const float* from = x + iy * height.in_step + ix * width.in_step;
      const float* tap = w + i * height.weight_step + j * width.weight_step;
      for (int32_t n = 0; n < ins; ++n) sum += from[n * in_channel] * tap[n * weight_in];
    }
  }
  return sum;
}

void Convolution::run() const {
  for (int32_t b = 0; b < batch; ++b) {
    for (int32_t c = 0; c < out_channels; ++c) {
      int32_t p[kSpatial];
      for (p[0] = 0; p[0] < dims[0].out; ++p[0]) {
        for (p[1] = 0; p[1] < dims[1].out; ++p[1]) {
          output[b * out_batch + c * out_channel + p[0] * dims[0].out_step +
                 p[1] * dims[1].out_step] = at(input + b * in_batch, c, p);
        }
      }
    }
  }
}

/// A list with one entry for all spatial dimensions or one for each; empty leaves the default.
void read_list(KernelContext& ctx, Args args, size_t index, size_t spatial,
               int32_t Dimension::*member, Convolution* c) {
  int32_t values[kSpatial] = {};
  const size_t count = ctx.int_list_upto(args, index, values, kSpatial);
  for (size_t i = 0; count != 0 && i < spatial; ++i) {
    c->dims[kSpatial - spatial + i].*member = values[count == 1 ? 0 : (i < count ? i : count - 1)];
  }
}

Error check_tensors(KernelContext& ctx, const Tensor& input, const Tensor& weight,
                    const Tensor* bias, const Tensor& out) {
  HIL_TRY(check_tensor(ctx, "input", input, ScalarType::Float));
  HIL_TRY(check_tensor(ctx, "weight", weight, ScalarType::Float));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Float));
  if (bias != nullptr) HIL_TRY(check_tensor(ctx, "bias", *bias, ScalarType::Float));
  const bool ranks = input.rank >= 3 && input.rank <= 2 + kSpatial && weight.rank == input.rank &&
                     out.rank == input.rank;
  if (ranks) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "input, weight and out are not of one rank, 3 or 4");
}

Error check_channels(KernelContext& ctx, const Convolution& c, const Tensor& weight,
                     const Tensor* bias) {
  HIL_TRY(check_range(ctx, "groups", c.groups, 1, kMaxParameter));
  const int32_t first = c.transposed ? c.in_channels : c.out_channels;
  const int32_t second = c.transposed ? c.out_channels : c.in_channels;
  const bool fits = c.in_channels % c.groups == 0 && c.out_channels % c.groups == 0 &&
                    weight.sizes[0] == first && weight.sizes[1] == second / c.groups;
  if (!fits) {
    return ctx.fail(Error::InvalidArgument, "%ld input and %ld output channels do not fit weight",
                    static_cast<long>(c.in_channels), static_cast<long>(c.out_channels));
  }
  if (bias == nullptr) return Error::Ok;
  return check_numel(ctx, "bias", *bias, static_cast<size_t>(c.out_channels));
}

Error check_dimension(KernelContext& ctx, const Dimension& d, bool transposed) {
  HIL_TRY(check_range(ctx, "kernel", d.kernel, 1, kMaxParameter));
  HIL_TRY(check_range(ctx, "stride", d.stride, 1, kMaxParameter));
  HIL_TRY(check_range(ctx, "padding", d.pad, 0, kMaxParameter));
  HIL_TRY(check_range(ctx, "dilation", d.dilation, 1, kMaxParameter));
  HIL_TRY(check_range(ctx, "output padding", d.extra, 0, kMaxParameter));
  if (d.expected(transposed) == d.out) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "out has an extent of %ld, expected %lld",
                  static_cast<long>(d.out), static_cast<long long>(d.expected(transposed)));
}

void set_steps(const Tensor& input, const Tensor& weight, const Tensor& out, Convolution* c) {
  const Strides in = strides_of(input), w = strides_of(weight), to = strides_of(out);
  for (size_t i = 2; i < input.rank; ++i) {
    Dimension& d = c->dims[kSpatial - input.rank + i];
    d.in = input.sizes[i], d.out = out.sizes[i], d.kernel = weight.sizes[i];
    d.in_step = in.step[i], d.out_step = to.step[i], d.weight_step = w.step[i];
  }
  c->batch = input.sizes[0];
  c->in_channels = input.sizes[1];
  c->out_channels = out.sizes[1];
  c->in_batch = in.step[0], c->in_channel = in.step[1];
  c->out_batch = to.step[0], c->out_channel = to.step[1];
  c->weight_in = w.step[c->transposed ? 0 : 1];
  c->weight_out = w.step[c->transposed ? 1 : 0];
}

}  // namespace

Error op_convolution(KernelContext& ctx, Args args) {
  Convolution c = {};
  const Tensor& input = ctx.tensor(args, 0);
  const Tensor& weight = ctx.tensor(args, 1);
  const Tensor* bias = ctx.optional_tensor(args, 2);
  const size_t spatial = input.rank >= 3 && input.rank <= 2 + kSpatial ? input.rank - 2 : 0;
  read_list(ctx, args, 3, spatial, &Dimension::stride, &c);
  read_list(ctx, args, 4, spatial, &Dimension::pad, &c);
  read_list(ctx, args, 5, spatial, &Dimension::dilation, &c);
  c.transposed = ctx.boolean(args, 6);
  read_list(ctx, args, 7, spatial, &Dimension::extra, &c);
  c.groups = ctx.int32(args, 8);
  Tensor& out = ctx.tensor(args, 9);
  if (!ctx.ok()) return ctx.argument_error();

  HIL_TRY(check_tensors(ctx, input, weight, bias, out));
  set_steps(input, weight, out, &c);
  HIL_TRY(check_channels(ctx, c, weight, bias));
  for (const Dimension& d : c.dims) HIL_TRY(check_dimension(ctx, d, c.transposed));
  if (out.sizes[0] != c.batch) {
    return ctx.fail(Error::InvalidArgument, "out has another batch than input");
  }
  const int32_t per_group = (c.transposed ? c.in_channels : c.out_channels) / c.groups;
  c.weight_group = per_group * (c.transposed ? c.weight_in : c.weight_out);
  c.input = input.as<float>();
  c.weight = weight.as<float>();
  c.bias = bias == nullptr ? nullptr : bias->as<float>();
  c.output = out.as<float>();
  c.run();
  return Error::Ok;
}
HIL_OPERATOR("aten::convolution.out", op_convolution);

}  // namespace hil
