// Depthwise convolution, one filter per channel: the portable path and the general Helium one.
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

#if defined(__ARM_FEATURE_MVE)

/// Four channels at a time in 32-bit lanes: any kernel, dilation or batch, no scratch.
template <Rounding R>
void depthwise_lanes(const Depthwise& d) {
  const size_t channels = d.window.channels_out;
  each_position(d, [&](int32_t y, int32_t x, const int8_t* image, int8_t* out) {
    for (size_t n = 0; n < channels; n += 4) {
      const mve_pred16_t lanes = vctp32q(channels - n);
      int32x4_t acc = d.bias == nullptr ? vdupq_n_s32(0) : vldrwq_z_s32(d.bias + n, lanes);
      each_tap(d, image, y, x, [&](const int8_t* pixel, const int8_t* weights) {
        const int32x4_t values = vaddq_n_s32(vldrbq_z_s32(pixel + n, lanes), d.input_offset);
        acc = vaddq_s32(acc, vmulq_s32(values, vldrbq_z_s32(weights + n, lanes)));
      });
      const int32x4_t bytes = to_output<R>(acc, load_multipliers(d.stage, n, lanes),
                                           load_shifts(d.stage, n, lanes), d.stage.offset,
                                           vdupq_n_s32(d.stage.min), vdupq_n_s32(d.stage.max));
      vstrbq_p_s32(out + n, bytes, lanes);
    }
  });
}

#else

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

#endif

}  // namespace hil
