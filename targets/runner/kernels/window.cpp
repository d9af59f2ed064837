#include "kernels/window.h"

namespace hil {

namespace {

constexpr int32_t kMaxWindowValue = 1 << 16;

}  // namespace

Error check_axis(KernelContext& ctx, const char* name, const Axis& axis) {
  const bool sane = axis.in >= 0 && axis.in <= (1 << 24) && axis.kernel >= 1 &&
                    axis.kernel <= kMaxWindowValue && axis.stride >= 1 &&
                    axis.stride <= kMaxWindowValue && axis.pad >= 0 &&
                    axis.pad <= kMaxWindowValue && axis.dilation >= 1 &&
                    axis.dilation <= kMaxWindowValue;
  if (sane) return Error::Ok;
  return ctx.fail(Error::InvalidArgument,
                  "%s: kernel %ld, stride %ld, padding %ld or dilation %ld out of range", name,
                  static_cast<long>(axis.kernel), static_cast<long>(axis.stride),
                  static_cast<long>(axis.pad), static_cast<long>(axis.dilation));
}

int64_t window_count(const Axis& axis, bool ceil_mode) {
  const int64_t room = int64_t{axis.in} + 2 * int64_t{axis.pad} -
                       int64_t{axis.dilation} * (axis.kernel - 1) - 1;
  if (room < 0) return 0;
  int64_t count = (room + (ceil_mode ? axis.stride - 1 : 0)) / axis.stride + 1;
  if (ceil_mode && (count - 1) * axis.stride >= int64_t{axis.in} + axis.pad) --count;
  return count;
}

void read_pair(KernelContext& ctx, Args args, size_t index, int32_t* h, int32_t* w) {
  int32_t values[2] = {0, 0};
  const size_t count = ctx.int_list_upto(args, index, values, 2);
  *h = values[0];
  *w = count == 1 ? values[0] : values[1];
}

ImageShape image_shape(const Tensor& t, Layout layout) {
  const int32_t* s = t.sizes;
  return layout == Layout::Nhwc ? ImageShape{s[0], s[3], s[1], s[2]}
                                : ImageShape{s[0], s[1], s[2], s[3]};
}

Error check_image(KernelContext& ctx, const char* name, const Tensor& t, Layout layout) {
  HIL_TRY(check_tensor(ctx, name, t, ScalarType::Char));
  const bool nhwc = layout == Layout::Nhwc;
  if (t.rank == 4 && (nhwc ? is_contiguous(t) : is_channels_last(t))) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "%s is not a rank-4 %s tensor", name,
                  nhwc ? "contiguous" : "channels-last");
}

Error read_image(KernelContext& ctx, const Tensor& input, Layout layout, Window* window) {
  HIL_TRY(check_image(ctx, "input", input, layout));
  const ImageShape in = image_shape(input, layout);
  window->batch = in.batch;
  window->channels_in = in.channels;
  window->h.in = in.height;
  window->w.in = in.width;
  return Error::Ok;
}

Error check_output(KernelContext& ctx, const Window& window, const Tensor& out, Layout layout) {
  HIL_TRY(check_image(ctx, "out", out, layout));
  const ImageShape got = image_shape(out, layout);
  if (got.batch == window.batch && got.channels == window.channels_out &&
      got.height == window.h.out && got.width == window.w.out) {
    return Error::Ok;
  }
  return ctx.fail(Error::InvalidArgument,
                  "out is %ld images of %ldx%ldx%ld (HWC), expected %ld of %ldx%ldx%ld",
                  static_cast<long>(got.batch), static_cast<long>(got.height),
                  static_cast<long>(got.width), static_cast<long>(got.channels),
                  static_cast<long>(window.batch), static_cast<long>(window.h.out),
                  static_cast<long>(window.w.out), static_cast<long>(window.channels_out));
}

Error check_window(KernelContext& ctx, Window& window, const Tensor& out, Layout layout,
                   bool ceil_mode) {
  HIL_TRY(check_axis(ctx, "height", window.h));
  HIL_TRY(check_axis(ctx, "width", window.w));
  window.h.out = static_cast<int32_t>(window_count(window.h, ceil_mode));
  window.w.out = static_cast<int32_t>(window_count(window.w, ceil_mode));
  return check_output(ctx, window, out, layout);
}

}  // namespace hil
