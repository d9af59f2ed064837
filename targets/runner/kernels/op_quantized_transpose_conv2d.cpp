// cortex_m::quantized_transpose_conv2d.out(input, weight, bias?, stride, padding,
//   output_padding, dilation, input_offset, output_offset, multipliers, shifts, act_min, act_max,
//   scratch, output_scratch, out)
// and quantized_transpose_conv2d_nhwc.out, the same for images of sizes NHWC.
//
// The definition accumulates in float32, which is exact up to 2^24; here it is always exact.
#include "kernels/conv_arguments.h"
#include "kernels/dot.h"
#include "kernels/operator.h"
#include "kernels/requantize.h"
#include "kernels/scratch_check.h"
#include "kernels/scratch_sizes.h"
#include "kernels/window.h"

namespace hil {

namespace {

/// Weights are OHWI. An input pixel p and a tap k reach the output p * stride - pad + k * dilation.
struct TransposeConvolution {
  Window window;
  const int8_t* input;
  const int8_t* weights;
  const int32_t* bias;  // null for none
  int32_t input_offset;
  OutputStage stage;
  int8_t* output;
};

/// The input position that reaches `out` through a tap, or -1.
int32_t source_of(const Axis& axis, int32_t out, int32_t tap) {
  const int32_t reach = out + axis.pad - tap * axis.dilation;
  if (reach < 0 || reach % axis.stride != 0 || reach / axis.stride >= axis.in) return -1;
  return reach / axis.stride;
}

int32_t accumulate(const TransposeConvolution& c, const int8_t* image, int32_t y, int32_t x,
                   int32_t channel) {
  const Window& win = c.window;
  const size_t depth = win.channels_in;
  const int8_t* w = c.weights + channel * (depth * win.h.kernel * win.w.kernel);
  int32_t acc = c.bias == nullptr ? 0 : c.bias[channel];
  for (int32_t ky = 0; ky < win.h.kernel; ++ky) {
    const int32_t iy = source_of(win.h, y, ky);
    for (int32_t kx = 0; kx < win.w.kernel; ++kx, w += depth) {
      const int32_t ix = iy < 0 ? -1 : source_of(win.w, x, kx);
      if (ix < 0) continue;
      const int8_t* pixel = image + (static_cast<size_t>(iy) * win.w.in + ix) * depth;
      acc = wrapping_add(acc, dot_offset(pixel, c.input_offset, w, depth));
    }
  }
  return acc;
}

void convolve(const TransposeConvolution& c) {
  const Window& win = c.window;
  int8_t* out = c.output;
  for (int32_t b = 0; b < win.batch; ++b) {
    const int8_t* image = c.input + b * win.image_in();
    for (int32_t y = 0; y < win.h.out; ++y) {
      for (int32_t x = 0; x < win.w.out; ++x) {
        for (int32_t n = 0; n < win.channels_out; ++n) {
          *out++ = to_output(accumulate(c, image, y, x, n), c.stage, n);
        }
      }
    }
  }
}

Error check_weight(KernelContext& ctx, const ConvArguments& a) {
  HIL_TRY(check_tensor(ctx, "weight", *a.weight, ScalarType::Char));
  if (!a.plain_weight() || a.weight->sizes[3] != a.window.channels_in) {
    return ctx.fail(Error::InvalidArgument, "weight is not a contiguous [O, H, W, %ld] tensor",
                    static_cast<long>(a.window.channels_in));
  }
  return a.check_bias(ctx, a.weight->sizes[0]);
}

Error set_extent(KernelContext& ctx, const char* name, Axis* axis, int32_t output_padding) {
  HIL_TRY(check_axis(ctx, name, *axis));
  HIL_TRY(check_range(ctx, "output padding", output_padding, 0, INT16_MAX));
  const int64_t extent = (int64_t{axis->in} - 1) * axis->stride - 2 * int64_t{axis->pad} +
                         int64_t{axis->dilation} * (axis->kernel - 1) + output_padding + 1;
  axis->out = extent < 0 || extent > INT32_MAX ? -1 : static_cast<int32_t>(extent);
  return Error::Ok;
}

Error transpose_conv2d(KernelContext& ctx, Args args, Layout layout) {
  ConvArguments a;
  a.read(ctx, args, 6, 7);
  int32_t extra_height, extra_width;
  read_pair(ctx, args, 5, &extra_height, &extra_width);
  const Tensor& scratch = ctx.tensor(args, 13);
  const Tensor& output_scratch = ctx.tensor(args, 14);
  Tensor& out = ctx.tensor(args, 15);
  if (!ctx.ok()) return ctx.argument_error();

  HIL_TRY(read_image(ctx, *a.input, layout, &a.window));
  HIL_TRY(check_weight(ctx, a));
  a.set_kernel(a.weight->sizes[0]);
  HIL_TRY(set_extent(ctx, "height", &a.window.h, extra_height));
  HIL_TRY(set_extent(ctx, "width", &a.window.w, extra_width));
  HIL_TRY(check_output(ctx, a.window, out, layout));
  HIL_TRY(a.check_quantisation(ctx));
  HIL_TRY(check_scratch(ctx, scratch,
                        [&](ScratchIsa isa) { return transpose_conv_scratch(isa, a.window); }));
  HIL_TRY(check_scratch(ctx, output_scratch, [&](ScratchIsa isa) {
    return transpose_conv_reverse_scratch(isa, a.window);
  }));
  if (out.numel == 0) return Error::Ok;

  convolve({a.window, a.input->as<int8_t>(), a.weight->as<int8_t>(), a.bias_values(),
            a.input_offset, a.stage(), out.as<int8_t>()});
  return Error::Ok;
}

}  // namespace

Error op_quantized_transpose_conv2d(KernelContext& ctx, Args args) {
  return transpose_conv2d(ctx, args, Layout::ChannelsLast);
}
HIL_OPERATOR("cortex_m::quantized_transpose_conv2d.out", op_quantized_transpose_conv2d);

Error op_quantized_transpose_conv2d_nhwc(KernelContext& ctx, Args args) {
  return transpose_conv2d(ctx, args, Layout::Nhwc);
}
HIL_OPERATOR("cortex_m::quantized_transpose_conv2d_nhwc.out", op_quantized_transpose_conv2d_nhwc);

}  // namespace hil
