// cortex_m::quantized_avg_pool2d.out(input, kernel_size, stride, padding, ceil_mode,
//   zero_point, multiplier, shift, scratch, out)
// and quantized_avg_pool2d_nhwc.out, the same for images of sizes NHWC.
//
// Definition, in float32: dequantise, sum the window row by row, divide by the
// number of elements inside the image, divide by the scale, round half to even.
#include <cmath>

#include "kernels/operator.h"
#include "kernels/pooling.h"
#include "kernels/scratch_sizes.h"

namespace hil {

namespace {

struct Pool {
  Window window;
  float scale;
  int32_t zero_point;
  const int8_t* input;
  int8_t* output;

  int8_t quantize(float sum, float count) const {
    const float value = std::nearbyint(sum / count / scale) + static_cast<float>(zero_point);
    const float raised = value < -128.0f ? -128.0f : value;
    return static_cast<int8_t>(raised > 127.0f ? 127.0f : raised);
  }
};

/// The pixels of a window that are inside the image.
struct Patch {
  const int8_t* first;
  int32_t rows, columns;
  size_t row_step, pixel_step;
};

void average_from(const Pool& pool, const Patch& patch, size_t channel, size_t end, int8_t* out) {
  const float count = static_cast<float>(patch.rows * patch.columns);
  for (size_t c = channel; c < end; ++c) {
    float sum = 0.0f;
    for (int32_t y = 0; y < patch.rows; ++y) {
      const int8_t* in = patch.first + y * patch.row_step + c;
      for (int32_t x = 0; x < patch.columns; ++x, in += patch.pixel_step) {
        sum += static_cast<float>(*in - pool.zero_point) * pool.scale;
      }
    }
    out[c] = pool.quantize(sum, count);
  }
}

/// Channels that were averaged four at a time.
size_t average_lanes(const Pool& pool, const Patch& patch, size_t channels, int8_t* out) {
  size_t c = 0;
#if defined(__ARM_FEATURE_MVE)
  const float count = static_cast<float>(patch.rows * patch.columns);
  for (; c + 4 <= channels; c += 4) {
    float32x4_t sum = vdupq_n_f32(0.0f);
    for (int32_t y = 0; y < patch.rows; ++y) {
      const int8_t* in = patch.first + y * patch.row_step + c;
      for (int32_t x = 0; x < patch.columns; ++x, in += patch.pixel_step) {
        const int32x4_t centred = vsubq_n_s32(vldrbq_s32(in), pool.zero_point);
        sum = vaddq_f32(sum, vmulq_n_f32(vcvtq_f32_s32(centred), pool.scale));
      }
    }
    for (int lane = 0; lane < 4; ++lane) out[c + lane] = pool.quantize(sum[lane], count);
  }
#else
  (void)pool, (void)patch, (void)channels, (void)out;
#endif
  return c;
}

void average(const Pool& pool) {
  const Window& win = pool.window;
  const size_t channels = win.channels_in;
  int8_t* out = pool.output;
  for (int32_t b = 0; b < win.batch; ++b) {
    const int8_t* image = pool.input + b * win.image_in();
    for (int32_t y = 0; y < win.h.out; ++y) {
      const int32_t oy = win.h.origin(y);
      const Taps rows = taps_inside(win.h, oy);
      for (int32_t x = 0; x < win.w.out; ++x, out += channels) {
        const int32_t ox = win.w.origin(x);
        const Taps columns = taps_inside(win.w, ox);
        const size_t row_step = win.w.in * channels;
        const Patch patch = {image + (oy + rows.begin) * row_step + (ox + columns.begin) * channels,
                             rows.end - rows.begin, columns.end - columns.begin, row_step,
                             channels};
        average_from(pool, patch, average_lanes(pool, patch, channels, out), channels, out);
      }
    }
  }
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
  HIL_TRY(check_shift(ctx, "shift", shift));
  HIL_TRY(check_scratch(ctx, scratch,
                        [&](ScratchIsa isa) { return avg_pool_scratch(isa, window.channels_in); }));
  if (out.numel == 0) return Error::Ok;

  const double scale = std::ldexp(static_cast<double>(multiplier), shift - 31);
  average({window, static_cast<float>(scale), zero_point, input.as<int8_t>(), out.as<int8_t>()});
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
