// cortex_m::quantized_avg_pool2d.out(input, kernel_size, stride, padding, ceil_mode,
//   zero_point, multiplier, shift, scratch, out)
// and quantized_avg_pool2d_nhwc.out, the same for images of sizes NHWC.
//
// CMSIS-NN sums integers and rounds half away from zero (arm_avgpool_s8, the same on every core).
// ExecuTorch's Python definition dequantises, sums the window row by row in float32, divides by
// the number of elements inside the image, then by the scale, and rounds half to even.
#include <cmath>

#include "kernels/avg_pool_helium.h"
#include "kernels/avg_pool_scalar.h"
#include "kernels/followed.h"
#include "kernels/isa.h"
#include "kernels/operator.h"
#include "kernels/pooling.h"
#include "kernels/scratch_check.h"
#include "kernels/scratch_sizes.h"

namespace hil {

namespace {

template <typename Average>
void pool(const Window& window, const Tensor& input, Tensor& out, const Average& average) {
  const size_t channels = window.channels_in;
  each_patch(window, input.as<int8_t>(), out.as<int8_t>(), [&](const Patch& patch, int8_t* pixel) {
    isa::average(average, patch, channels, pixel);
  });
}

/// The sum of a window of integers fits 32 bits.
[[maybe_unused]] Error check_sums(KernelContext& ctx, const Window& window) {
  if (int64_t{window.h.kernel} * window.w.kernel < int64_t{1} << 23) return Error::Ok;
  return ctx.fail(Error::NotSupported, "a window of more than 2^23 elements");
}

Error avg_pool2d(KernelContext& ctx, Args args, Layout layout) {
  Window window = {};
  const Tensor& input = ctx.tensor(args, 0);
  read_pooling(ctx, args, &window);
  const bool ceil_mode = ctx.boolean(args, 4);
  int32_t numbers[3];
  ctx.integers(args, 5, numbers, 3);
  const int32_t zero_point = numbers[0], multiplier = numbers[1], shift = numbers[2];
  const Tensor& scratch = ctx.tensor(args, 8);
  Tensor& out = ctx.tensor(args, 9);
  if (!ctx.ok()) return ctx.argument_error();

  HIL_TRY(read_image(ctx, input, layout, &window));
  window.channels_out = window.channels_in;
  HIL_TRY(check_window(ctx, window, out, layout, ceil_mode));
  HIL_TRY(check_pooling_pad(ctx, window));
  HIL_TRY(check_range(ctx, "zero point", zero_point, -128, 127));
  HIL_TRY(check_range(ctx, "multiplier", multiplier, 1, INT32_MAX));
  // Of the input's scale, which may be any float32: the mean of integers does not depend on it.
  HIL_TRY(check_range(ctx, "shift", shift, -148, 128));
  HIL_TRY(check_scratch(ctx, scratch,
                        [&](ScratchIsa isa) { return avg_pool_scratch(isa, window.channels_in); }));
  if (out.numel == 0) return Error::Ok;

  if constexpr (kFollowsPython) {
    const double scale = std::ldexp(static_cast<double>(multiplier), shift - 31);
    pool(window, input, out, FloatAverage{static_cast<float>(scale), zero_point});
  } else {
    HIL_TRY(check_sums(ctx, window));
    pool(window, input, out, IntegerAverage{});
  }
  return Error::Ok;
}

}  // namespace

Error op_quantized_avg_pool2d(KernelContext& ctx, Args args) {
  return avg_pool2d(ctx, args, Layout::ChannelsLast);
}
HIL_OPERATOR("cortex_m::quantized_avg_pool2d.out", op_quantized_avg_pool2d);

Error op_quantized_avg_pool2d_nhwc(KernelContext& ctx, Args args) {
  return avg_pool2d(ctx, args, Layout::Nhwc);
}
HIL_OPERATOR("cortex_m::quantized_avg_pool2d_nhwc.out", op_quantized_avg_pool2d_nhwc);

}  // namespace hil
