// What pooling operators share: their first arguments, and planes of any dim order.
#pragma once

#include "kernels/layout.h"
#include "kernels/window.h"

namespace hil {

/// A pair of arguments that may be left out.
void read_optional_pair(KernelContext& ctx, Args args, size_t index, int32_t* h, int32_t* w);

/// Arguments 1 to 3: kernel size, stride (the kernel size when empty) and padding (none when
/// empty). The dilation becomes 1.
void read_pooling(KernelContext& ctx, Args args, Window* window);

/// Padding is at most half of the kernel.
Error check_pooling_pad(KernelContext& ctx, const Window& window);

/// An image of rank 4 or 3 (no batch) whose windows go over the last two dimensions: fills the
/// window's extents and checks it.
Error read_planes(KernelContext& ctx, const Tensor& self, bool ceil_mode, Window* window);

/// `t` has the window's output planes in the place of self's.
Error check_planes(KernelContext& ctx, const char* name, const Tensor& t, const Tensor& self,
                   const Window& window);

/// An adaptive pool: argument 1 is the size of out's planes. Fills the extents of the window, which
/// has no kernel: `adaptive_extent` gives the place of each. Checks self's and out's type and
/// planes.
Error read_adaptive(KernelContext& ctx, Args args, const Tensor& self, const Tensor& out,
                    Window* window);

/// Inputs [begin, end) of one output position.
struct Extent {
  int32_t begin, end;
};

Extent adaptive_extent(const Axis& axis, int32_t position);

/// The step of each dimension of an image, 0 for the batch of a rank-3 one.
struct PlaneSteps {
  size_t n, c, h, w;

  explicit PlaneSteps(const Tensor& t);
  size_t at(int32_t batch, int32_t channel, int32_t y, int32_t x) const {
    return static_cast<size_t>(batch) * n + static_cast<size_t>(channel) * c +
           static_cast<size_t>(y) * h + static_cast<size_t>(x) * w;
  }
};

/// Calls each(batch, channel, y, x) for every output position.
template <typename Each>
void each_position(const Window& window, Each each) {
  for (int32_t b = 0; b < window.batch; ++b) {
    for (int32_t c = 0; c < window.channels_out; ++c) {
      for (int32_t y = 0; y < window.h.out; ++y) {
        for (int32_t x = 0; x < window.w.out; ++x) each(b, c, y, x);
      }
    }
  }
}

}  // namespace hil
