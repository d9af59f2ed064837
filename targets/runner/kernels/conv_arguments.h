// What the quantised convolutions are called with; only the positions differ.
#pragma once

#include "kernels/window.h"

namespace hil {

struct ConvArguments {
  Window window;
  const Tensor *input, *weight, *bias;  // bias may be null
  const Tensor *multipliers, *shifts;
  int32_t input_offset;
  OutputBounds bounds;

  /// Arguments 0 to 4 (input, weight, bias, stride, padding), the dilation, and from
  /// `quantisation` on: offsets of input and output, multipliers, shifts, bounds of the output.
  void read(KernelContext& ctx, Args args, size_t dilation, size_t quantisation);

  /// int8 weights of rank 4, contiguous.
  bool plain_weight() const;
  Error check_bias(KernelContext& ctx, int32_t channels) const;
  /// The window's kernel and output channels.
  void set_kernel(int32_t channels_out);
  /// Scales, offsets and bounds.
  Error check_quantisation(KernelContext& ctx) const;

  const int32_t* bias_values() const { return bias == nullptr ? nullptr : bias->as<int32_t>(); }
  OutputStage stage() const {
    return {multipliers->as<int32_t>(),
            shifts->as<int32_t>(),
            1,
            bounds.offset,
            bounds.min,
            bounds.max};
  }
};

}  // namespace hil
