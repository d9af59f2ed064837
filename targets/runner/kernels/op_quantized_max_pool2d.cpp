// cortex_m::quantized_max_pool2d.out(input, kernel_size, stride, padding, dilation, ceil_mode,
//   input_zero_point, output_zero_point, act_min, act_max, out)
// and quantized_max_pool2d_nhwc.out, the same for images of sizes NHWC.
#include "kernels/operator.h"
#include "kernels/pooling.h"
#include "kernels/window.h"

namespace hil {

namespace {

struct Pool {
  Window window;
  int8_t min, max;
  const int8_t* input;
  int8_t* output;
};

struct Patch {
  const int8_t* first;
  int32_t rows, columns;
  size_t row_step, pixel_step;
};

int8_t largest(const Patch& patch, size_t channel) {
  int8_t most = INT8_MIN;
  for (int32_t y = 0; y < patch.rows; ++y) {
    const int8_t* in = patch.first + y * patch.row_step + channel;
    for (int32_t x = 0; x < patch.columns; ++x, in += patch.pixel_step)
      most = *in > most ? *in : most;
  }
  return most;
}

void pool_pixel(const Pool& pool, const Patch& patch, size_t channels, int8_t* out) {
#if defined(__ARM_FEATURE_MVE)
  for (size_t c = 0; c < channels; c += 16) {
    const mve_pred16_t lanes = vctp8q(channels - c);
    int8x16_t most = vdupq_n_s8(INT8_MIN);
    for (int32_t y = 0; y < patch.rows; ++y) {
      const int8_t* in = patch.first + y * patch.row_step + c;
      for (int32_t x = 0; x < patch.columns; ++x, in += patch.pixel_step) {
        most = vmaxq_s8(most, vldrbq_z_s8(in, lanes));
      }
    }
    most = vminq_s8(vmaxq_s8(most, vdupq_n_s8(pool.min)), vdupq_n_s8(pool.max));
    vstrbq_p_s8(out + c, most, lanes);
  }
  (void)largest;
#else
  for (size_t c = 0; c < channels; ++c) {
    out[c] = static_cast<int8_t>(clamp(largest(patch, c), pool.min, pool.max));
  }
#endif
}

void pool_image(const Pool& pool) {
  const Window& win = pool.window;
  const size_t channels = win.channels_in, row_step = win.w.in * channels;
  int8_t* out = pool.output;
  for (int32_t b = 0; b < win.batch; ++b) {
    const int8_t* image = pool.input + b * win.image_in();
    for (int32_t y = 0; y < win.h.out; ++y) {
      const int32_t oy = win.h.origin(y);
      const Taps rows = taps_inside(win.h, oy);
      for (int32_t x = 0; x < win.w.out; ++x, out += channels) {
        const int32_t ox = win.w.origin(x);
        const Taps columns = taps_inside(win.w, ox);
        pool_pixel(pool,
                   {image + (oy + rows.begin) * row_step + (ox + columns.begin) * channels,
                    rows.end - rows.begin, columns.end - columns.begin, row_step, channels},
                   channels, out);
      }
    }
  }
}

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
  pool_image({window, static_cast<int8_t>(bounds.min), static_cast<int8_t>(bounds.max),
              input.as<int8_t>(), out.as<int8_t>()});
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
