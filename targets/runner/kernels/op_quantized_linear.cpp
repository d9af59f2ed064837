// cortex_m::quantized_linear.out(input, weights, bias?, kernel_sum?, input_offset,
//   filter_offset, output_offset, multipliers, shifts, act_max, act_min, out)
#include "kernels/checks.h"
#include "kernels/dot_rows.h"
#include "kernels/operators.h"

namespace hil {

namespace {

struct Linear {
  size_t rows, inner, channels;
  const int8_t* input;
  const int8_t* weights;
  const int32_t* bias;        // added as it is; null for none
  int32_t input_offset;       // 0 when the bias already holds its share
  int32_t filter_offset;
  OutputStage stage;
  int8_t* output;
};

void multiply_portable(const Linear& l) {
  for (size_t m = 0; m < l.rows; ++m) {
    const int8_t* x = l.input + m * l.inner;
    for (size_t n = 0; n < l.channels; ++n) {
      const int8_t* w = l.weights + n * l.inner;
      int32_t acc = l.bias == nullptr ? 0 : l.bias[n];
      for (size_t i = 0; i < l.inner; ++i) {
        acc = wrapping_add(acc, wrapping_multiply(x[i] + l.input_offset, w[i] + l.filter_offset));
      }
      l.output[m * l.channels + n] = to_output(acc, l.stage, n);
    }
  }
}

#if defined(__ARM_FEATURE_MVE)

void multiply_helium(const Linear& l) {
  const Rounding rounding = rounding_for(l.stage, 1);
  const ByteRows x = {l.input, l.inner, l.inner, l.rows};
  const ByteRows all = {l.weights, l.inner, l.inner, l.channels};
  if (l.input_offset == 0) {
    return dot_rows(rounding, x, all, l.bias, l.stage, l.output, l.channels);
  }
  int32_t folded[kBiasBlock];
  for (size_t n = 0; n < l.channels; n += kBiasBlock) {
    const size_t left = l.channels - n;
    const ByteRows some = {l.weights + n * l.inner, l.inner, l.inner,
                           left < kBiasBlock ? left : kBiasBlock};
    fold_bias(some, l.bias == nullptr ? nullptr : l.bias + n, l.input_offset, folded);
    dot_rows(rounding, x, some, folded, l.stage, l.output + n, l.channels);
  }
}

#endif

void multiply(const Linear& l) {
#if defined(__ARM_FEATURE_MVE)
  if (l.filter_offset == 0) return multiply_helium(l);
#endif
  multiply_portable(l);
}

Error check_shapes(KernelContext& ctx, const Tensor& input, const Tensor& weights,
                   const Tensor& out) {
  HIL_TRY(check_tensor(ctx, "input", input, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "weights", weights, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Char));
  const bool shapes = input.rank >= 1 && weights.rank == 2 && out.rank == input.rank &&
                      input.sizes[input.rank - 1] == weights.sizes[1];
  if (!shapes || !is_contiguous(input) || !is_contiguous(weights) || !is_contiguous(out)) {
    return ctx.fail(Error::InvalidArgument, "input, weights and out are not matching contiguous matrices");
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
  const int64_t input_offset = ctx.integer(args, 4);
  const int64_t filter_offset = ctx.integer(args, 5);
  const int64_t output_offset = ctx.integer(args, 6);
  int32_t multiplier = 0, shift = 0;
  ctx.int_list(args, 7, &multiplier, 1);
  ctx.int_list(args, 8, &shift, 1);
  const int64_t act_max = ctx.integer(args, 9);
  const int64_t act_min = ctx.integer(args, 10);
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
  HIL_TRY(check_scale(ctx, "requantize", multiplier, shift));
  HIL_TRY(check_range(ctx, "input offset", input_offset, INT16_MIN, INT16_MAX));
  HIL_TRY(check_range(ctx, "filter offset", filter_offset, INT16_MIN, INT16_MAX));
  HIL_TRY(check_output_bounds(ctx, output_offset, act_min, act_max));
  if (out.numel == 0) return Error::Ok;

  const int32_t multipliers[4] = {multiplier, multiplier, multiplier, multiplier};
  const int32_t shifts[4] = {shift, shift, shift, shift};
  multiply({out.numel / channels, inner, channels, input.as<int8_t>(), weights.as<int8_t>(),
            addend == nullptr ? nullptr : addend->as<int32_t>(),
            kernel_sum != nullptr ? 0 : static_cast<int32_t>(input_offset),
            static_cast<int32_t>(filter_offset),
            OutputStage{multipliers, shifts, 0, static_cast<int32_t>(output_offset),
                        static_cast<int32_t>(act_min), static_cast<int32_t>(act_max)},
            out.as<int8_t>()});
  return Error::Ok;
}

}  // namespace hil
