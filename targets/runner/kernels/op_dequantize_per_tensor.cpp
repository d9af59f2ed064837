// cortex_m::dequantize_per_tensor.out(input, scale, zero_point, quant_min, quant_max, dtype, out)
// and quantized_decomposed::dequantize_per_tensor.out, which has out_dtype? before out.
//
// Definition: torch.ops.quantized_decomposed.dequantize_per_tensor, in float32:
// (float(input) - zero_point) * float(scale).
#include "kernels/elements.h"
#include "kernels/integers.h"
#include "kernels/isa.h"
#include "kernels/layout.h"
#include "kernels/operator.h"
#include "kernels/quantize_helium.h"
#include "kernels/quantize_scalar.h"

namespace hil {

namespace {

void dequantize(const Tensor& in, float* out, float scale, int32_t zero_point) {
  if (in.type == ScalarType::Char) {
    return isa::dequantize(in.as<int8_t>(), out, in.numel, scale, zero_point);
  }
  const Load load = load_for(in.type);
  const size_t size = element_size(in.type);
  const float zero = static_cast<float>(zero_point);
  for (size_t i = 0; i < in.numel; ++i) {
    out[i] = (load(in.data + i * size).as_float() - zero) * scale;
  }
}

Error dequantize_per_tensor(KernelContext& ctx, Args args, size_t out_index) {
  const Tensor& input = ctx.tensor(args, 0);
  const double scale = ctx.number(args, 1);
  int32_t numbers[4];  // zero point, quant_min, quant_max, dtype
  ctx.integers(args, 2, numbers, 4);
  const int32_t zero_point = numbers[0];
  Tensor& out = ctx.tensor(args, out_index);
  if (!ctx.ok()) return ctx.argument_error();

  ScalarType type;
  HIL_TRY(check_integer_type(ctx, numbers[3], &type));
  HIL_TRY(check_tensor(ctx, "input", input, type));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Float));
  const IntegerRange range = integer_range(type);
  HIL_TRY(check_range(ctx, "zero point", zero_point, range.low, range.high));
  if (!same_layout(input, out)) {
    // The type differs by design; only sizes and order are compared.
    return ctx.fail(Error::InvalidArgument, "input and out differ in shape or dim order");
  }
  dequantize(input, out.as<float>(), static_cast<float>(scale), zero_point);
  return Error::Ok;
}

}  // namespace

Error op_dequantize_per_tensor(KernelContext& ctx, Args args) {
  return dequantize_per_tensor(ctx, args, 6);
}
HIL_OPERATOR("cortex_m::dequantize_per_tensor.out", op_dequantize_per_tensor);

Error op_dequantize_per_tensor_as(KernelContext& ctx, Args args) {
  const bool unnamed = args.size() > 6 && args[6]->tag == Tag::None;
  if (!unnamed && ctx.int32(args, 6) != static_cast<int32_t>(ScalarType::Float)) {
    return ctx.fail(Error::NotSupported, "out_dtype is not float32");
  }
  return dequantize_per_tensor(ctx, args, 7);
}
HIL_OPERATOR("quantized_decomposed::dequantize_per_tensor.out", op_dequantize_per_tensor_as);

}  // namespace hil
