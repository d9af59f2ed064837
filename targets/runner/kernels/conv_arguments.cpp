#include "kernels/conv_arguments.h"

namespace hil {

void ConvArguments::read(KernelContext& ctx, Args args, size_t dilation, size_t quantisation) {
  window = {};
  input = &ctx.tensor(args, 0);
  weight = &ctx.tensor(args, 1);
  bias = ctx.optional_tensor(args, 2);
  read_pair(ctx, args, 3, &window.h.stride, &window.w.stride);
  read_pair(ctx, args, 4, &window.h.pad, &window.w.pad);
  read_pair(ctx, args, dilation, &window.h.dilation, &window.w.dilation);
  int32_t offsets[2];
  ctx.integers(args, quantisation, offsets, 2);
  multipliers = &ctx.tensor(args, quantisation + 2);
  shifts = &ctx.tensor(args, quantisation + 3);
  int32_t limits[2];
  ctx.integers(args, quantisation + 4, limits, 2);
  input_offset = offsets[0];
  bounds = {offsets[1], limits[0], limits[1]};
}

bool ConvArguments::plain_weight() const { return weight->rank == 4 && is_contiguous(*weight); }

Error ConvArguments::check_bias(KernelContext& ctx, int32_t channels) const {
  if (bias == nullptr) return Error::Ok;
  HIL_TRY(check_tensor(ctx, "bias", *bias, ScalarType::Int));
  return check_numel(ctx, "bias", *bias, static_cast<size_t>(channels));
}

void ConvArguments::set_kernel(int32_t channels_out) {
  window.channels_out = channels_out;
  window.h.kernel = weight->sizes[1];
  window.w.kernel = weight->sizes[2];
}

Error ConvArguments::check_quantisation(KernelContext& ctx) const {
  HIL_TRY(
      check_channel_scales(ctx, *multipliers, *shifts, static_cast<size_t>(window.channels_out)));
  HIL_TRY(check_range(ctx, "input offset", input_offset, INT16_MIN, INT16_MAX));
  return check_output_bounds(ctx, bounds);
}

}  // namespace hil
