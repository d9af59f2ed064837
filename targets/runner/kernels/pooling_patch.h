// The window of an int8 pooling operator on channels-last images, output pixel by output pixel.
#pragma once

#include "kernels/window.h"

namespace hil {

/// The pixels of a window that are inside the image.
struct Patch {
  const int8_t* first;
  int32_t rows, columns;
  size_t row_step, pixel_step;
};

/// Calls each(patch, out) for every output pixel; `out` is its first channel.
template <typename Each>
void each_patch(const Window& win, const int8_t* input, int8_t* out, Each each) {
  const size_t channels = win.channels_in, row_step = win.w.in * channels;
  for (int32_t b = 0; b < win.batch; ++b) {
    const int8_t* image = input + b * win.image_in();
    for (int32_t y = 0; y < win.h.out; ++y) {
      const int32_t oy = win.h.origin(y);
      const Taps rows = taps_inside(win.h, oy);
      for (int32_t x = 0; x < win.w.out; ++x, out += channels) {
        const int32_t ox = win.w.origin(x);
        const Taps columns = taps_inside(win.w, ox);
        const Patch patch = {image + (oy + rows.begin) * row_step + (ox + columns.begin) * channels,
                             rows.end - rows.begin, columns.end - columns.begin, row_step,
                             channels};
        each(patch, out);
      }
    }
  }
}

}  // namespace hil
