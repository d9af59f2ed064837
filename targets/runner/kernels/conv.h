// Convolution of channels-last int8 images, shared by the operators that reduce to it.
#pragma once

#include "kernels/requantize.h"
#include "kernels/window.h"

namespace hil {

/// Weights are OHWI: channels_out rows of kernel height x width x group channels.
struct Convolution {
  Window window;
  int32_t group_channels;
  const int8_t* input;
  const int8_t* weights;
  const int32_t* bias;  // null for none
  int32_t input_offset;
  OutputStage stage;
  int8_t* output;
  Span<int8_t> scratch;

  size_t column() const {
    return static_cast<size_t>(window.h.kernel) * window.w.kernel * group_channels;
  }
  int32_t groups() const { return window.channels_in / group_channels; }
};

void convolve(const Convolution& c);

}  // namespace hil
