// cortex_m::quantized_depthwise_conv2d.out(input, weight, bias?, stride, padding, dilation,
//   depth_multiplier, input_offset, output_offset, multipliers, shifts, act_min, act_max,
//   scratch, out)
// and quantized_depthwise_conv2d_nhwc.out, the same for images of sizes NHWC.
#include "kernels/conv.h"
#include "kernels/conv_arguments.h"
#include "kernels/depthwise_helium.h"
#include "kernels/depthwise_scalar.h"
#include "kernels/isa.h"
#include "kernels/operator.h"
#include "kernels/scratch_check.h"
#include "kernels/scratch_sizes.h"

namespace hil {

namespace {

/// A single input channel makes an ordinary convolution of OHWI weights; they
/// are transposed into the scratch memory, in front of the im2col columns.
bool convolve_single_channel(const Depthwise& d) {
  const Window& win = d.window;
  const size_t taps = d.taps(), channels = win.channels_out;
  const bool zero_fits = d.input_offset >= -127 && d.input_offset <= 128;
  if (win.channels_in != 1 || !zero_fits || d.scratch.size() / taps < channels + 1) return false;
  int8_t* rows = d.scratch.data();
  for (size_t n = 0; n < channels; ++n) {
    const int8_t* w = d.weights + n;
    for (size_t t = 0; t < taps; ++t, w += channels) *rows++ = *w;
  }
  const size_t used = taps * channels;
  convolve({win, 1, d.input, d.scratch.data(), d.bias, d.input_offset, d.stage, d.output,
            d.scratch.sub(used, d.scratch.size() - used)});
  return true;
}

void convolve_depthwise(const Depthwise& d) {
  if (!convolve_single_channel(d) && !isa::convolve_channels(d)) depthwise_portable(d);
}

Error check_weight(KernelContext& ctx, const ConvArguments& a, int32_t depth_multiplier) {
  HIL_TRY(check_tensor(ctx, "weight", *a.weight, ScalarType::Char));
  if (!a.plain_weight() || a.weight->sizes[0] != 1) {
    return ctx.fail(Error::InvalidArgument, "weight is not a contiguous [1, H, W, C] tensor");
  }
  const int32_t channels = a.window.channels_in, out = a.weight->sizes[3];
  if (channels < 1 || out != int64_t{channels} * depth_multiplier) {
    return ctx.fail(
        Error::InvalidArgument, "%ld input channels times %ld are not %ld output channels",
        static_cast<long>(channels), static_cast<long>(depth_multiplier), static_cast<long>(out));
  }
  return a.check_bias(ctx, out);
}

Error depthwise_conv2d(KernelContext& ctx, Args args, Layout layout) {
  ConvArguments a;
  a.read(ctx, args, 5, 7);
  const int32_t depth_multiplier = ctx.int32(args, 6);
  const Tensor& scratch = ctx.tensor(args, 13);
  Tensor& out = ctx.tensor(args, 14);
  if (!ctx.ok()) return ctx.argument_error();

  HIL_TRY(check_range(ctx, "depth multiplier", depth_multiplier, 1, INT16_MAX));
  HIL_TRY(read_image(ctx, *a.input, layout, &a.window));
  HIL_TRY(check_weight(ctx, a, depth_multiplier));
  a.set_kernel(a.weight->sizes[3]);
  HIL_TRY(check_window(ctx, a.window, out, layout));
  HIL_TRY(a.check_quantisation(ctx));
  HIL_TRY(check_scratch(ctx, scratch,
                        [&](ScratchIsa isa) { return depthwise_scratch(isa, a.window); }));
  if (out.numel == 0) return Error::Ok;

  convolve_depthwise({a.window, a.input->as<int8_t>(), a.weight->as<int8_t>(), a.bias_values(),
                      a.input_offset, a.stage(), out.as<int8_t>(), scratch_bytes(scratch)});
  return Error::Ok;
}

}  // namespace

Error op_quantized_depthwise_conv2d(KernelContext& ctx, Args args) {
  return depthwise_conv2d(ctx, args, Layout::ChannelsLast);
}
HIL_OPERATOR("cortex_m::quantized_depthwise_conv2d.out", op_quantized_depthwise_conv2d);

Error op_quantized_depthwise_conv2d_nhwc(KernelContext& ctx, Args args) {
  return depthwise_conv2d(ctx, args, Layout::Nhwc);
}
HIL_OPERATOR("cortex_m::quantized_depthwise_conv2d_nhwc.out", op_quantized_depthwise_conv2d_nhwc);

}  // namespace hil
