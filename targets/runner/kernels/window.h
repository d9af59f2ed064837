// Geometry of sliding windows over channels-last images.
#pragma once

#include "kernels/checks.h"

namespace hil {

struct Axis {
  int32_t in, out, kernel, stride, pad, dilation;

  int32_t origin(int32_t position) const { return position * stride - pad; }
};

/// Kernel taps [begin, end) that fall inside the image for one window.
struct Taps {
  int32_t begin, end;
};

inline Taps taps_inside(const Axis& axis, int32_t origin) {
  const int32_t d = axis.dilation;
  const int32_t begin = origin >= 0 ? 0 : (-origin + d - 1) / d;
  const int32_t room = axis.in - origin;
  const int32_t end = room <= 0 ? 0 : (room + d - 1) / d;
  const int32_t last = end < axis.kernel ? end : axis.kernel;
  return {begin < last ? begin : last, last};
}

struct Window {
  int32_t batch, channels_in, channels_out;
  Axis h, w;

  size_t positions() const { return static_cast<size_t>(h.out) * w.out; }
  size_t image_in() const { return static_cast<size_t>(h.in) * w.in * channels_in; }
  size_t image_out() const { return positions() * channels_out; }
  bool padded() const { return h.pad != 0 || w.pad != 0; }
};

constexpr int32_t kMaxWindowValue = 1 << 16;

/// `lists` are two-element lists in the order they were read; one element means both.
inline Error check_axis(KernelContext& ctx, const char* name, const Axis& axis) {
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

/// Windows along one axis; ceil_mode as torch.nn.functional.avg_pool2d defines it.
inline int64_t window_count(const Axis& axis, bool ceil_mode) {
  const int64_t room = int64_t{axis.in} + 2 * int64_t{axis.pad} -
                       int64_t{axis.dilation} * (axis.kernel - 1) - 1;
  if (room < 0) return 0;
  int64_t count = (room + (ceil_mode ? axis.stride - 1 : 0)) / axis.stride + 1;
  if (ceil_mode && (count - 1) * axis.stride >= int64_t{axis.in} + axis.pad) --count;
  return count;
}

/// A pair given as one or two integers.
inline void read_pair(KernelContext& ctx, Args args, size_t index, int32_t* h, int32_t* w) {
  int32_t values[2] = {0, 0};
  const size_t count = ctx.int_list_upto(args, index, values, 2);
  *h = values[0];
  *w = count == 1 ? values[0] : values[1];
}

inline Error check_image(KernelContext& ctx, const char* name, const Tensor& t) {
  HIL_TRY(check_tensor(ctx, name, t, ScalarType::Char));
  if (t.rank == 4 && is_channels_last(t)) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "%s is not a rank-4 channels-last tensor", name);
}

/// Checks the window, fills its output extents, and checks `out` against them.
inline Error check_window(KernelContext& ctx, Window& window, const Tensor& out,
                          bool ceil_mode = false) {
  HIL_TRY(check_axis(ctx, "height", window.h));
  HIL_TRY(check_axis(ctx, "width", window.w));
  HIL_TRY(check_image(ctx, "out", out));
  const int64_t height = window_count(window.h, ceil_mode);
  const int64_t width = window_count(window.w, ceil_mode);
  if (out.sizes[0] != window.batch || out.sizes[1] != window.channels_out ||
      out.sizes[2] != height || out.sizes[3] != width) {
    return ctx.fail(Error::InvalidArgument, "out is [%ld, %ld, %ld, %ld], expected [%ld, %ld, %ld, %ld]",
                    static_cast<long>(out.sizes[0]), static_cast<long>(out.sizes[1]),
                    static_cast<long>(out.sizes[2]), static_cast<long>(out.sizes[3]),
                    static_cast<long>(window.batch), static_cast<long>(window.channels_out),
                    static_cast<long>(height), static_cast<long>(width));
  }
  window.h.out = static_cast<int32_t>(height);
  window.w.out = static_cast<int32_t>(width);
  return Error::Ok;
}

}  // namespace hil
