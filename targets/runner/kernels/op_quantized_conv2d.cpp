// cortex_m::quantized_conv2d.out(input, weight, bias?, stride, padding, dilation,
//   input_offset, output_offset, multipliers, shifts, act_min, act_max, scratch, out)
// and quantized_conv2d_nhwc.out, the same for images of sizes NHWC.
#include "kernels/conv.h"
#include "kernels/operators.h"
#include "kernels/scratch_sizes.h"

namespace hil {

namespace {

Error check_weights(KernelContext& ctx, int32_t channels, const Tensor& weight,
                    const Tensor* bias) {
  HIL_TRY(check_tensor(ctx, "weight", weight, ScalarType::Char));
  if (weight.rank != 4 || !is_contiguous(weight)) {
    return ctx.fail(Error::InvalidArgument, "weight is not a contiguous rank-4 tensor");
  }
  const int32_t group = weight.sizes[3], out = weight.sizes[0];
  if (group < 1 || channels % group != 0 || channels < group || out % (channels / group) != 0) {
    return ctx.fail(Error::InvalidArgument, "%ld input channels do not divide into groups of %ld for %ld outputs",
                    static_cast<long>(channels), static_cast<long>(group), static_cast<long>(out));
  }
  if (bias == nullptr) return Error::Ok;
  HIL_TRY(check_tensor(ctx, "bias", *bias, ScalarType::Int));
  return check_numel(ctx, "bias", *bias, static_cast<size_t>(out));
}

Error conv2d(KernelContext& ctx, Args args, Layout layout) {
  Window window = {};
  const Tensor& input = ctx.tensor(args, 0);
  const Tensor& weight = ctx.tensor(args, 1);
  const Tensor* bias = ctx.optional_tensor(args, 2);
  read_pair(ctx, args, 3, &window.h.stride, &window.w.stride);
  read_pair(ctx, args, 4, &window.h.pad, &window.w.pad);
  read_pair(ctx, args, 5, &window.h.dilation, &window.w.dilation);
  const int32_t input_offset = ctx.int32(args, 6);
  const Tensor& multipliers = ctx.tensor(args, 8);
  const Tensor& shifts = ctx.tensor(args, 9);
  const OutputBounds bounds = {ctx.int32(args, 7), ctx.int32(args, 10), ctx.int32(args, 11)};
  const Tensor& scratch = ctx.tensor(args, 12);
  Tensor& out = ctx.tensor(args, 13);
  if (!ctx.ok()) return ctx.argument_error();

  HIL_TRY(read_image(ctx, input, layout, &window));
  HIL_TRY(check_weights(ctx, window.channels_in, weight, bias));
  window.channels_out = weight.sizes[0];
  window.h.kernel = weight.sizes[1];
  window.w.kernel = weight.sizes[2];
  HIL_TRY(check_window(ctx, window, out, layout));
  HIL_TRY(check_channel_scales(ctx, multipliers, shifts, static_cast<size_t>(window.channels_out)));
  HIL_TRY(check_range(ctx, "input offset", input_offset, INT16_MIN, INT16_MAX));
  HIL_TRY(check_output_bounds(ctx, bounds));
  HIL_TRY(check_scratch(ctx, scratch, [&](ScratchIsa isa) {
    return conv_scratch(isa, window, weight.sizes[3]);
  }));
  if (out.numel == 0) return Error::Ok;

  convolve({window, weight.sizes[3], input.as<int8_t>(), weight.as<int8_t>(),
            bias == nullptr ? nullptr : bias->as<int32_t>(), input_offset,
            OutputStage{multipliers.as<int32_t>(), shifts.as<int32_t>(), 1, bounds.offset,
                        bounds.min, bounds.max},
            out.as<int8_t>(), scratch_bytes(scratch)});
  return Error::Ok;
}

}  // namespace

Error op_quantized_conv2d(KernelContext& ctx, Args args) {
  return conv2d(ctx, args, Layout::ChannelsLast);
}

Error op_quantized_conv2d_nhwc(KernelContext& ctx, Args args) {
  return conv2d(ctx, args, Layout::Nhwc);
}

}  // namespace hil
