// aten::_native_batch_norm_legit_no_training.out(input, weight?, bias?, running_mean, running_var,
// momentum, eps, out, save_mean, save_invstd) for floats of any dim order. The inverse deviation is
// computed in double, the rest in float, as in ExecuTorch's portable kernel (which takes contiguous
// tensors alone); torch's is another in the last bits. The saved statistics are empty.
#include <cmath>

#include "kernels/arithmetic.h"
#include "kernels/operator.h"
#include "kernels/portable/norm_parameter.h"

namespace hil {

namespace {

/// Of a dense tensor: `groups` times the channels, each with `width` neighbours in memory.
struct Channels {
  size_t groups, count, width;
};

struct Statistics {
  const float *weight = nullptr, *bias = nullptr;  // null: 1 and 0
  const float *mean = nullptr, *variance = nullptr;
  double eps = 0.0;

  void normalise(const Channels& channels, const float* x, float* y) const;
};

void Statistics::normalise(const Channels& channels, const float* x, float* y) const {
  for (size_t group = 0; group < channels.groups; ++group) {
    for (size_t c = 0; c < channels.count; ++c) {
      const float inverse = static_cast<float>(1.0 / std::sqrt(double{variance[c]} + eps));
      const float scale = weight == nullptr ? 1.0f : weight[c];
      const float offset = bias == nullptr ? 0.0f : bias[c];
      for (size_t i = 0; i < channels.width; ++i) {
        *y++ = (*x++ - mean[c]) * inverse * scale + offset;
      }
    }
  }
}

}  // namespace

Error op_native_batch_norm_legit_no_training(KernelContext& ctx, Args args) {
  const Tensor& input = ctx.tensor(args, 0);
  const Tensor* weight = ctx.optional_tensor(args, 1);
  const Tensor* bias = ctx.optional_tensor(args, 2);
  const Tensor& mean = ctx.tensor(args, 3);
  const Tensor& variance = ctx.tensor(args, 4);
  Statistics statistics;
  statistics.eps = ctx.number(args, 6);
  Tensor& out = ctx.tensor(args, 7);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "input", input, ScalarType::Float));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Float));
  if (input.rank < 2) return ctx.fail(Error::InvalidArgument, "input has no channels");
  if (!same_layout(input, out)) {
    return ctx.fail(Error::InvalidArgument, "input and out differ in shape or dim order");
  }
  Channels channels;
  channels.count = static_cast<size_t>(input.sizes[1]);
  HIL_TRY(read_parameter(ctx, "weight", weight, channels.count, &statistics.weight));
  HIL_TRY(read_parameter(ctx, "bias", bias, channels.count, &statistics.bias));
  HIL_TRY(read_parameter(ctx, "running_mean", &mean, channels.count, &statistics.mean));
  HIL_TRY(read_parameter(ctx, "running_var", &variance, channels.count, &statistics.variance));
  if (input.numel == 0) return Error::Ok;
  channels.width = static_cast<size_t>(strides_of(input).step[1]);
  channels.groups = input.numel / (channels.count * channels.width);
  statistics.normalise(channels, input.as<float>(), out.as<float>());
  return Error::Ok;
}
HIL_OPERATOR("aten::_native_batch_norm_legit_no_training.out",
             op_native_batch_norm_legit_no_training);

}  // namespace hil
