// cortex_m::quantize_per_tensor.out(input, scale, zero_point, quant_min, quant_max, dtype, out)
// and quantized_decomposed::quantize_per_tensor.out, the same.
//
// Python: torch.ops.quantized_decomposed.quantize_per_tensor, in float32:
// clamp(round_half_even(input * float(1 / scale)) + zero_point).
// ExecuTorch's C++ takes 1 / float(scale), and its cortex_m kernel with Helium rounds the product
// once (vfmaq) in whole rows of 16 bytes; what is left of a row goes one by one.
#include "kernels/elements.h"
#include "kernels/followed.h"
#include "kernels/integers.h"
#include "kernels/isa.h"
#include "kernels/layout.h"
#include "kernels/operator.h"
#include "kernels/quantize_helium.h"
#include "kernels/quantize_scalar.h"

namespace hil {

namespace {

constexpr size_t kRowBytes = 16;

/// How many elements, from the first on, are in whole rows.
size_t in_rows(const Tensor& out) {
  return kFusesRows ? out.nbytes / kRowBytes * (kRowBytes / element_size(out.type)) : 0;
}

void quantize(const float* in, Tensor& out, size_t whole, const Quantizer& quantizer) {
  if (out.type == ScalarType::Char) {
    return isa::quantize(in, out.as<int8_t>(), whole, out.numel, quantizer);
  }
  const Store store = store_for(out.type);
  const size_t size = element_size(out.type);
  for (size_t i = 0; i < out.numel; ++i) {
    store(Scalar::of(quantizer.at(in[i], i < whole)), out.data + i * size);
  }
}

float inverse_of(double scale) {
  return kFollowsPython ? static_cast<float>(1.0 / scale) : 1.0f / static_cast<float>(scale);
}

Error quantize_per_tensor(KernelContext& ctx, Args args, bool fuses) {
  const Tensor& input = ctx.tensor(args, 0);
  const double scale = ctx.number(args, 1);
  int32_t numbers[4];
  ctx.integers(args, 2, numbers, 4);
  const int32_t zero_point = numbers[0], quant_min = numbers[1], quant_max = numbers[2];
  Tensor& out = ctx.tensor(args, 6);
  if (!ctx.ok()) return ctx.argument_error();

  ScalarType type;
  HIL_TRY(check_integer_type(ctx, numbers[3], &type));
  HIL_TRY(check_tensor(ctx, "input", input, ScalarType::Float));
  HIL_TRY(check_tensor(ctx, "out", out, type));
  const IntegerRange range = integer_range(type);
  HIL_TRY(check_range(ctx, "zero point", zero_point, range.low, range.high));
  HIL_TRY(check_range(ctx, "quant_min", quant_min, range.low, range.high));
  HIL_TRY(check_range(ctx, "quant_max", quant_max, range.low, range.high));
  if (!(scale > 0)) return ctx.fail(Error::InvalidArgument, "scale is not positive");
  if (!same_layout(input, out)) {
    return ctx.fail(Error::InvalidArgument, "input and out differ in shape or dim order");
  }
  quantize(input.as<float>(), out, fuses ? in_rows(out) : 0,
           {inverse_of(scale), zero_point, quant_min, quant_max});
  return Error::Ok;
}

}  // namespace

Error op_quantize_per_tensor(KernelContext& ctx, Args args) {
  return quantize_per_tensor(ctx, args, true);
}
HIL_OPERATOR("cortex_m::quantize_per_tensor.out", op_quantize_per_tensor);

Error op_decomposed_quantize_per_tensor(KernelContext& ctx, Args args) {
  return quantize_per_tensor(ctx, args, false);
}
HIL_OPERATOR("quantized_decomposed::quantize_per_tensor.out", op_decomposed_quantize_per_tensor);

}  // namespace hil
