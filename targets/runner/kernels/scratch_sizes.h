// Scratch bytes that ExecuTorch's exporter plans for each operator: the sizes
// CMSIS-NN asks for. Found by probing executorch.backends.cortex_m.library.cmsis_nn
// (executorch 1.5.1) and held to it by tests/kernels/test_scratch_sizes.py.
#pragma once

#include "kernels/window.h"

namespace hil {

enum class ScratchIsa { Mve, Dsp, Scalar };

constexpr size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

/// Room for four im2col columns of bytes (MVE) or two of 16-bit words.
inline size_t im2col_scratch(ScratchIsa isa, size_t column) {
  return isa == ScratchIsa::Mve ? 4 * round_up(column, 16) : 4 * round_up(column, 4);
}

/// CMSIS-NN's one-dimensional MVE convolution splits a row into a left, a middle
/// and a right part; a row too short for that takes the general path.
inline bool splits_row(const Axis& w) {
  const int32_t missing = (w.out - 1) * w.stride + w.kernel - w.in;
  const int32_t right_pad = w.pad + missing % 2;
  const auto windows = [&](int32_t pad) {
    const int32_t count = (pad + w.stride - 1) / w.stride;
    return pad == 0 ? 0 : (count > 1 ? count : 1);
  };
  const int32_t edges = windows(right_pad) + windows(w.pad);
  return edges <= w.out;
}

inline size_t conv_scratch(ScratchIsa isa, const Window& window, int32_t weight_channels) {
  const Axis &h = window.h, &w = window.w;
  const bool flat = h.dilation == 1 && w.dilation == 1;
  const bool grouped = weight_channels != window.channels_in;
  const size_t column = static_cast<size_t>(window.channels_in) * h.kernel * w.kernel;
  if (h.kernel == 1 && w.kernel == 1 && !window.padded() && flat && !grouped) return 0;
  const bool one_row = isa == ScratchIsa::Mve && h.in == 1 && h.kernel == 1 && w.dilation == 1 &&
                       !grouped && (w.stride * window.channels_in) % 4 == 0;
  if (one_row && splits_row(w)) {
    return static_cast<size_t>(window.channels_in) * (w.kernel + w.pad);
  }
  return im2col_scratch(isa, column);
}

inline size_t depthwise_scratch(ScratchIsa isa, const Window& window) {
  const Axis &h = window.h, &w = window.w;
  const size_t taps = static_cast<size_t>(h.kernel) * w.kernel;
  const bool one_to_one = window.channels_in == window.channels_out;
  if (isa == ScratchIsa::Mve && window.channels_in == 1 && !one_to_one) {
    return taps * window.channels_out + im2col_scratch(isa, taps);
  }
  if (!one_to_one || window.batch != 1 || h.dilation != 1 || w.dilation != 1) return 0;
  switch (isa) {
    case ScratchIsa::Mve:
      return 4 * 124 * taps;
    case ScratchIsa::Dsp:
      return h.kernel == 3 && w.kernel == 3 && h.pad <= 1 && w.pad <= 1
                 ? 0
                 : 2 * taps * window.channels_in;
    case ScratchIsa::Scalar:
      break;
  }
  return 0;
}

inline size_t avg_pool_scratch(ScratchIsa isa, int32_t channels) {
  return isa == ScratchIsa::Dsp ? 4 * static_cast<size_t>(channels) : 0;
}

/// The sum of each weight row, for cores that fold the offset into it.
inline size_t matmul_scratch(ScratchIsa isa, size_t columns) {
  return isa == ScratchIsa::Mve ? 4 * columns : 0;
}

/// CMSIS-NN turns transposed convolutions of small strides into ordinary ones.
inline bool reverses(const Window& window) {
  return window.h.stride <= 2 && window.w.stride <= 2 && window.channels_in > 16;
}

inline size_t transpose_conv_scratch(ScratchIsa isa, const Window& window) {
  const Axis &h = window.h, &w = window.w;
  if (reverses(window)) {
    return im2col_scratch(isa, static_cast<size_t>(window.channels_in) * h.kernel * w.kernel);
  }
  // Accumulators of one row of outputs. The width, too, has the stride of the height in it.
  const auto larger = [](int32_t a, int32_t b) { return static_cast<size_t>(a > b ? a : b); };
  const size_t width = static_cast<size_t>(w.in - 1) * w.stride + larger(w.kernel, h.stride);
  return 4 * width * larger(h.kernel, h.stride) * window.channels_out;
}

/// The weights, turned round.
inline size_t transpose_conv_reverse_scratch(ScratchIsa, const Window& window) {
  if (!reverses(window)) return 0;
  return static_cast<size_t>(window.channels_in) * window.channels_out * window.h.kernel *
         window.w.kernel;
}

/// The bytes a kernel may write: none of a tensor without storage or a constant.
inline Span<int8_t> scratch_bytes(const Tensor& scratch) {
  if (scratch.data == nullptr || scratch.constant) return {};
  return {scratch.as<int8_t>(), scratch.nbytes};
}

}  // namespace hil
