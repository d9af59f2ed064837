// Depthwise convolution without Helium, with the DSP instructions where the core has them.
#pragma once

#if !defined(__ARM_FEATURE_MVE)

#include "kernels/depthwise.h"

namespace hil::scalar {

/// Four accumulators and what one tap adds to them: four pixels times four weights, or one pixel
/// times four weights (`Single`) when there is but one input channel.
template <bool Single>
struct Quad {
  int32_t a0, a1, a2, a3;

#if defined(__ARM_FEATURE_DSP)
  void add(const int8_t* pixel, const int8_t* weights, int32_t offset) {
    const BytePairs w(weights);
    if constexpr (Single) {
      const int32_t x = *pixel + offset;
      a0 = __smlabb(w.even, x, a0);
      a1 = __smlabb(w.odd, x, a1);
      a2 = __smlatb(w.even, x, a2);
      a3 = __smlatb(w.odd, x, a3);
    } else {
      const BytePairs x(pixel, twice(offset));
      a0 = __smlabb(x.even, w.even, a0);
      a1 = __smlabb(x.odd, w.odd, a1);
      a2 = __smlatt(x.even, w.even, a2);
      a3 = __smlatt(x.odd, w.odd, a3);
    }
  }
#else
  void add(const int8_t* pixel, const int8_t* weights, int32_t offset) {
    constexpr int kStep = Single ? 0 : 1;
    a0 = wrapping_add(a0, wrapping_multiply(pixel[0] + offset, weights[0]));
    a1 = wrapping_add(a1, wrapping_multiply(pixel[kStep] + offset, weights[1]));
    a2 = wrapping_add(a2, wrapping_multiply(pixel[2 * kStep] + offset, weights[2]));
    a3 = wrapping_add(a3, wrapping_multiply(pixel[3 * kStep] + offset, weights[3]));
  }
#endif
};

/// The taps of a window inside the image, as steps through memory.
struct TapSteps {
  int32_t rows, columns;
  size_t pixel, row;                 // of the image
  size_t weight, weight_row;         // of the weights
  size_t first_pixel, first_weight;  // from the image's and the weights' start

  TapSteps(const Window& win, int32_t y, int32_t x) {
    const int32_t oy = win.h.origin(y), ox = win.w.origin(x);
    const Taps down = taps_inside(win.h, oy), across = taps_inside(win.w, ox);
    rows = down.end - down.begin;
    columns = across.end - across.begin;
    pixel = static_cast<size_t>(win.w.dilation) * win.channels_in;
    row = static_cast<size_t>(win.h.dilation) * win.w.in * win.channels_in;
    weight = win.channels_out;
    weight_row = weight * win.w.kernel;
    const size_t iy = oy + down.begin * win.h.dilation, ix = ox + across.begin * win.w.dilation;
    first_pixel = (iy * win.w.in + ix) * win.channels_in;
    first_weight = down.begin * weight_row + across.begin * weight;
  }

  template <typename Quad>
  Quad accumulate(const int8_t* pixels, const int8_t* weights, int32_t offset, Quad quad) const {
    for (int32_t r = rows; r != 0; --r, pixels += row, weights += weight_row) {
      const int8_t *p = pixels, *w = weights;
      for (int32_t c = columns; c != 0; --c, p += pixel, w += weight) quad.add(p, w, offset);
    }
    return quad;
  }
};

/// Four channels at a time, the last four overlapping those before: one filter per channel or a
/// single input channel, at least four filters, an offset that fits 16 bits.
template <bool Single>
void depthwise_quads(const Depthwise& d) {
  const size_t channels = d.window.channels_out;
  const OutputStage stage = d.stage;
  const int32_t* const bias = d.bias;
  const int32_t offset = d.input_offset;
  const bool shifts_right = rounding_for(stage, channels) != Rounding::Exact;
  each_position(d, [&](int32_t y, int32_t x, const int8_t* image, int8_t* out) {
    const TapSteps taps(d.window, y, x);
    const int8_t* pixels = image + taps.first_pixel;
    const int8_t* weights = d.weights + taps.first_weight;
    for (size_t next = 0; next < channels; next += 4) {
      const size_t n = next + 4 <= channels ? next : channels - 4;
      Quad<Single> sum = {0, 0, 0, 0};
      if (bias != nullptr) sum = {bias[n], bias[n + 1], bias[n + 2], bias[n + 3]};
      sum = taps.accumulate(Single ? pixels : pixels + n, weights + n, offset, sum);
      out[n] = ChannelOutput(stage, n, shifts_right)(sum.a0);
      out[n + 1] = ChannelOutput(stage, n + 1, shifts_right)(sum.a1);
      out[n + 2] = ChannelOutput(stage, n + 2, shifts_right)(sum.a2);
      out[n + 3] = ChannelOutput(stage, n + 3, shifts_right)(sum.a3);
    }
  });
}

/// Several channels at a time; false when these sequences do not suit.
inline bool convolve_channels(const Depthwise& d) {
  const bool fits = d.input_offset >= INT16_MIN + 128 && d.input_offset <= INT16_MAX - 127;
  const bool single = d.window.channels_in == 1;
  if (!fits || d.window.channels_out < 4 || (d.multiplier() != 1 && !single)) return false;
  single ? depthwise_quads<true>(d) : depthwise_quads<false>(d);
  return true;
}

}  // namespace hil::scalar

#endif
