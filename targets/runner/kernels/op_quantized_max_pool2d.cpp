// cortex_m::quantized_max_pool2d.out(input, kernel_size, stride, padding, dilation, ceil_mode,
//   input_zero_point, output_zero_point, act_min, act_max, out)
// and quantized_max_pool2d_nhwc.out, the same for images of sizes NHWC.
#include "kernels/isa.h"
#include "kernels/max_pool_helium.h"
#include "kernels/max_pool_scalar.h"
#include "kernels/operator.h"
#include "kernels/pooling.h"
#include "kernels/window.h"

namespace hil {

namespace {

Error max_pool2d(KernelContext& ctx, Args args, Layout layout) {
  Window window = {};
  const Tensor& input = ctx.tensor(args, 0);
  read_pooling(ctx, args, &window);
  read_pair(ctx, args, 4, &window.h.dilation, &window.w.dilation);
  const bool ceil_mode = ctx.boolean(args, 5);
  const int32_t input_zero = ctx.int32(args, 6);
  const OutputBounds bounds = {ctx.int32(args, 7), ctx.int32(args, 8), ctx.int32(args, 9)};
  Tensor& out = ctx.tensor(args, 10);
  if (!ctx.ok()) return ctx.argument_error();

  HIL_TRY(read_image(ctx, input, layout, &window));
  window.channels_out = window.channels_in;
  if (window.h.dilation != 1 || window.w.dilation != 1 || ceil_mode) {
    return ctx.fail(Error::InvalidArgument, "dilation and ceil_mode are not defined");
  }
  if (input_zero != bounds.offset) {
    return ctx.fail(Error::InvalidArgument, "input and output zero points differ");
  }
  HIL_TRY(check_window(ctx, window, out, layout));
  HIL_TRY(check_pooling_pad(ctx, window));
  HIL_TRY(check_output_bounds(ctx, bounds));
  if (out.numel == 0) return Error::Ok;
  const int8_t min = static_cast<int8_t>(bounds.min), max = static_cast<int8_t>(bounds.max);
  const size_t channels = window.channels_in;
  each_patch(window, input.as<int8_t>(), out.as<int8_t>(), [&](const Patch& patch, int8_t* pixel) {
    isa::largest(patch, channels, min, max, pixel);
  });
  return Error::Ok;
}

}  // namespace

Error op_quantized_max_pool2d(KernelContext& ctx, Args args) {
  return max_pool2d(ctx, args, Layout::ChannelsLast);
}
HIL_OPERATOR("cortex_m::quantized_max_pool2d.out", op_quantized_max_pool2d);

Error op_quantized_max_pool2d_nhwc(KernelContext& ctx, Args args) {
  return max_pool2d(ctx, args, Layout::Nhwc);
}
HIL_OPERATOR("cortex_m::quantized_max_pool2d_nhwc.out", op_quantized_max_pool2d_nhwc);

}  // namespace hil
