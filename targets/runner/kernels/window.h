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

Error check_axis(KernelContext& ctx, const char* name, const Axis& axis);

/// Windows along one axis; ceil_mode as torch.nn.functional.avg_pool2d defines it.
int64_t window_count(const Axis& axis, bool ceil_mode);

/// A pair given as one or two integers.
void read_pair(KernelContext& ctx, Args args, size_t index, int32_t* h, int32_t* w);

/// How the dimensions of an image tensor are named: sizes are NCHW in channels-last memory
/// (the dim-order operators), or sizes are NHWC in contiguous memory (the _nhwc operators).
enum class Layout { ChannelsLast, Nhwc };

struct ImageShape {
  int32_t batch, channels, height, width;
};

ImageShape image_shape(const Tensor& t, Layout layout);

/// int8, rank 4, channels innermost in memory.
Error check_image(KernelContext& ctx, const char* name, const Tensor& t, Layout layout);

/// Checks the input image and fills the window's input extents.
Error read_image(KernelContext& ctx, const Tensor& input, Layout layout, Window* window);

/// Checks the window, fills its output extents, and checks `out` against them.
Error check_window(KernelContext& ctx, Window& window, const Tensor& out, Layout layout,
                   bool ceil_mode = false);

/// `out` is the image of the window's output extents.
Error check_output(KernelContext& ctx, const Window& window, const Tensor& out, Layout layout);

}  // namespace hil
