// Depthwise convolution, one filter per channel: its windows, and the path for all of them.
#pragma once

#include "kernels/bytes.h"
#include "kernels/dot.h"
#include "kernels/dot_rows.h"
#include "kernels/window.h"

namespace hil {

/// Weights are IHWO: for each tap a run of channels_out bytes.
struct Depthwise {
  Window window;
  const int8_t* input;
  const int8_t* weights;
  const int32_t* bias;  // null for none
  int32_t input_offset;
  OutputStage stage;
  int8_t* output;
  Span<int8_t> scratch;

  int32_t multiplier() const { return window.channels_out / window.channels_in; }
  size_t taps() const { return static_cast<size_t>(window.h.kernel) * window.w.kernel; }
};

/// Calls each(y, x, image, out) for every output position; `out` is its first channel.
template <typename Each>
void each_position(const Depthwise& d, Each each) {
  const Window& win = d.window;
  int8_t* out = d.output;
  for (int32_t b = 0; b < win.batch; ++b) {
    const int8_t* image = d.input + b * win.image_in();
    for (int32_t y = 0; y < win.h.out; ++y) {
      for (int32_t x = 0; x < win.w.out; ++x, out += win.channels_out) each(y, x, image, out);
    }
  }
}

/// Calls each(pixel, weights) for every tap inside the image: first input
/// channel of the pixel and first weight of the tap.
template <typename Each>
void each_tap(const Depthwise& d, const int8_t* image, int32_t y, int32_t x, Each each) {
  const Window& win = d.window;
  const int32_t oy = win.h.origin(y), ox = win.w.origin(x);
  const Taps rows = taps_inside(win.h, oy), columns = taps_inside(win.w, ox);
  for (int32_t ky = rows.begin; ky < rows.end; ++ky) {
    for (int32_t kx = columns.begin; kx < columns.end; ++kx) {
      const size_t iy = oy + ky * win.h.dilation, ix = ox + kx * win.w.dilation;
      each(image + (iy * win.w.in + ix) * win.channels_in,
           d.weights + (static_cast<size_t>(ky) * win.w.kernel + kx) * win.channels_out);
    }
  }
}

/// Any depth multiplier, one channel at a time.
inline void depthwise_portable(const Depthwise& d) {
  const int32_t multiplier = d.multiplier();
  each_position(d, [&](int32_t y, int32_t x, const int8_t* image, int8_t* out) {
    for (int32_t n = 0; n < d.window.channels_out; ++n) {
      int32_t acc = d.bias == nullptr ? 0 : d.bias[n];
      each_tap(d, image, y, x, [&](const int8_t* pixel, const int8_t* weights) {
        const int32_t value = pixel[n / multiplier] + d.input_offset;
        acc = wrapping_add(acc, wrapping_multiply(value, weights[n]));
      });
      out[n] = to_output(acc, d.stage, n);
    }
  });
}

}  // namespace hil
