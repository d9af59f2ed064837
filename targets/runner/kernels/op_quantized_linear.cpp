// cortex_m::quantized_linear.out(input, weights, bias?, kernel_sum?, input_offset,
//   filter_offset, output_offset, multipliers, shifts, act_max, act_min, out)
#include "kernels/checks.h"
#include "kernels/matmul.h"
#include "kernels/operator.h"

namespace hil {

namespace {

Error check_shapes(KernelContext& ctx, const Tensor& input, const Tensor& weights,
                   const Tensor& out) {
  HIL_TRY(check_tensor(ctx, "input", input, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "weights", weights, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Char));
  const bool shapes = input.rank >= 1 && weights.rank == 2 && out.rank == input.rank &&
                      input.sizes[input.rank - 1] == weights.sizes[1];
  if (!shapes || !is_contiguous(input) || !is_contiguous(weights) || !is_contiguous(out)) {
    return ctx.fail(Error::InvalidArgument,
                    "input, weights and out are not matching contiguous matrices");
  }
  size_t rows = 1;
  for (size_t i = 0; i + 1 < input.rank; ++i) rows *= static_cast<size_t>(input.sizes[i]);
  return check_numel(ctx, "out", out, rows * static_cast<size_t>(weights.sizes[0]));
}

}  // namespace

Error op_quantized_linear(KernelContext& ctx, Args args) {
  const Tensor& input = ctx.tensor(args, 0);
  const Tensor& weights = ctx.tensor(args, 1);
  const Tensor* bias = ctx.optional_tensor(args, 2);
  const Tensor* kernel_sum = ctx.optional_tensor(args, 3);
  int32_t offsets[3];  // input, filter, output
  ctx.integers(args, 4, offsets, 3);
  int32_t multiplier, shift;
  ctx.int_list(args, 7, &multiplier, 1);
  ctx.int_list(args, 8, &shift, 1);
  const int32_t act_max = ctx.int32(args, 9), act_min = ctx.int32(args, 10);
  Tensor& out = ctx.tensor(args, 11);
  if (!ctx.ok()) return ctx.argument_error();

  HIL_TRY(check_shapes(ctx, input, weights, out));
  const size_t channels = static_cast<size_t>(weights.sizes[0]);
  const size_t inner = static_cast<size_t>(weights.sizes[1]);
  const Tensor* addend = kernel_sum != nullptr ? kernel_sum : bias;
  if (addend != nullptr) {
    HIL_TRY(check_tensor(ctx, "bias", *addend, ScalarType::Int));
    HIL_TRY(check_numel(ctx, "bias", *addend, channels));
  }
  HIL_TRY(check_shift(ctx, "requantize shift", shift));
  HIL_TRY(check_range(ctx, "input offset", offsets[0], INT16_MIN, INT16_MAX));
  HIL_TRY(check_range(ctx, "filter offset", offsets[1], INT16_MIN, INT16_MAX));
  HIL_TRY(check_output_bounds(ctx, {offsets[2], act_min, act_max}));
  if (out.numel == 0) return Error::Ok;

  const int32_t multipliers[4] = {multiplier, multiplier, multiplier, multiplier};
  const int32_t shifts[4] = {shift, shift, shift, shift};
  multiply({out.numel / channels, inner, channels, input.as<int8_t>(), weights.as<int8_t>(),
            addend == nullptr ? nullptr : addend->as<int32_t>(),
            kernel_sum != nullptr ? 0 : offsets[0], offsets[1],
            OutputStage{multipliers, shifts, 0, offsets[2], act_min, act_max}, out.as<int8_t>()});
  return Error::Ok;
}
HIL_OPERATOR("cortex_m::quantized_linear.out", op_quantized_linear);

}  // namespace hil
