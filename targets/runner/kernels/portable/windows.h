// Where the windows of pools and convolutions are, along one or two dimensions.
#pragma once

#include "kernels/portable/call.h"

namespace hil {

/// One dimension of the windows.
struct Side {
  int64_t in, out, kernel, stride, padding, dilation;

  int64_t at(int64_t position, int64_t k) const {
    return stride * position + dilation * k - padding;
  }
  bool has(int64_t at) const { return at >= 0 && at < in; }
};

/// Images of channels as both kinds of order have them, and the steps between elements. A row of
/// elements is an image of one line.
struct Planes {
  int64_t batches, channels, height, width;
  int64_t batch_step, channel_step, row_step, step;

  /// `t` has channels and `sides` dimensions behind them, and a batch if `batched`.
  Planes(const Tensor& t, size_t sides, bool batched);

  size_t at(int64_t b, int64_t c, int64_t y, int64_t x) const {
    return static_cast<size_t>(b * batch_step + c * channel_step + y * row_step + x * step);
  }
};

/// A list has one value for all sides or one for each, none of them smaller than `least`.
Error require_sides(KernelContext& ctx, const Ints& list, size_t sides, int64_t least,
                    bool may_be_empty, const char* what);

/// How many positions a window has, as ExecuTorch counts them.
int64_t positions(const Side& side, bool ceil_mode);

/// The extents of images that a pool or a convolution made are not empty.
Error require_extents(KernelContext& ctx, const Shape& shape, size_t sides);

}  // namespace hil
