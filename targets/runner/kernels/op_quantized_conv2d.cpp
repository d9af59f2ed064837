// cortex_m::quantized_conv2d.out(input, weight, bias?, stride, padding, dilation,
//   input_offset, output_offset, multipliers, shifts, act_min, act_max, scratch, out)
// and quantized_conv2d_nhwc.out, the same for images of sizes NHWC.
#include "kernels/conv.h"
#include "kernels/conv_arguments.h"
#include "kernels/operator.h"
#include "kernels/scratch_check.h"
#include "kernels/scratch_sizes.h"

namespace hil {

namespace {

Error check_weight(KernelContext& ctx, const ConvArguments& a) {
  HIL_TRY(check_tensor(ctx, "weight", *a.weight, ScalarType::Char));
  if (!a.plain_weight()) {
    return ctx.fail(Error::InvalidArgument, "weight is not a contiguous rank-4 tensor");
  }
  const int32_t channels = a.window.channels_in;
  const int32_t group = a.weight->sizes[3], out = a.weight->sizes[0];
  if (group < 1 || channels % group != 0 || channels < group || out % (channels / group) != 0) {
    return ctx.fail(Error::InvalidArgument,
                    "%ld input channels do not divide into groups of %ld for %ld outputs",
                    static_cast<long>(channels), static_cast<long>(group), static_cast<long>(out));
  }
  return a.check_bias(ctx, out);
}

Error conv2d(KernelContext& ctx, Args args, Layout layout) {
  ConvArguments a;
  a.read(ctx, args, 5, 6);
  const Tensor& scratch = ctx.tensor(args, 12);
  Tensor& out = ctx.tensor(args, 13);
  if (!ctx.ok()) return ctx.argument_error();

  HIL_TRY(read_image(ctx, *a.input, layout, &a.window));
  HIL_TRY(check_weight(ctx, a));
  a.set_kernel(a.weight->sizes[0]);
  HIL_TRY(check_window(ctx, a.window, out, layout));
  HIL_TRY(a.check_quantisation(ctx));
  const int32_t group = a.weight->sizes[3];
  HIL_TRY(check_scratch(ctx, scratch,
                        [&](ScratchIsa isa) { return conv_scratch(isa, a.window, group); }));
  if (out.numel == 0) return Error::Ok;

  convolve({a.window, group, a.input->as<int8_t>(), a.weight->as<int8_t>(), a.bias_values(),
            a.input_offset, a.stage(), out.as<int8_t>(), scratch_bytes(scratch)});
  return Error::Ok;
}

}  // namespace

Error op_quantized_conv2d(KernelContext& ctx, Args args) {
  return conv2d(ctx, args, Layout::ChannelsLast);
}
HIL_OPERATOR("cortex_m::quantized_conv2d.out", op_quantized_conv2d);

Error op_quantized_conv2d_nhwc(KernelContext& ctx, Args args) {
  return conv2d(ctx, args, Layout::Nhwc);
}
HIL_OPERATOR("cortex_m::quantized_conv2d_nhwc.out", op_quantized_conv2d_nhwc);

}  // namespace hil
