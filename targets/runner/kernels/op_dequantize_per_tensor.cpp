// cortex_m::dequantize_per_tensor.out(input, scale, zero_point, quant_min, quant_max, dtype, out)
//
// Definition: torch.ops.quantized_decomposed.dequantize_per_tensor, in float32:
// (input - zero_point) * float(scale).
#include "kernels/checks.h"
#include "kernels/layout.h"
#include "kernels/operators.h"

namespace hil {

namespace {

template <typename T>
void dequantize(const T* in, float* out, size_t count, float scale, int32_t zero_point) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i] - zero_point) * scale;
}

#if defined(__ARM_FEATURE_MVE)

void dequantize(const int8_t* in, float* out, size_t count, float scale, int32_t zero_point) {
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(count - i);
    const int32x4_t shifted = vsubq_n_s32(vldrbq_z_s32(in + i, lanes), zero_point);
    vstrwq_p_f32(out + i, vmulq_n_f32(vcvtq_f32_s32(shifted), scale), lanes);
  }
}

#endif

}  // namespace

Error op_dequantize_per_tensor(KernelContext& ctx, Args args) {
  const Tensor& input = ctx.tensor(args, 0);
  const double scale = ctx.number(args, 1);
  int32_t numbers[4];  // zero point, quant_min, quant_max, dtype
  ctx.integers(args, 2, numbers, 4);
  const int32_t zero_point = numbers[0], dtype = numbers[3];
  Tensor& out = ctx.tensor(args, 6);
  if (!ctx.ok()) return ctx.argument_error();

  const ScalarType type = static_cast<ScalarType>(dtype);
  const bool is_byte = type == ScalarType::Char;
  if (!is_byte && type != ScalarType::Short) {
    return ctx.fail(Error::InvalidArgument, "dtype %ld is neither int8 nor int16",
                    static_cast<long>(dtype));
  }
  HIL_TRY(check_tensor(ctx, "input", input, type));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Float));
  HIL_TRY(check_range(ctx, "zero point", zero_point, INT16_MIN, INT16_MAX));
  if (!same_layout(input, out)) {
    // The type differs by design; only sizes and order are compared.
    return ctx.fail(Error::InvalidArgument, "input and out differ in shape or dim order");
  }
  const float step = static_cast<float>(scale);
  const int32_t zero = static_cast<int32_t>(zero_point);
  if (is_byte) {
    dequantize(input.as<int8_t>(), out.as<float>(), out.numel, step, zero);
  } else {
    dequantize(input.as<int16_t>(), out.as<float>(), out.numel, step, zero);
  }
  return Error::Ok;
}

}  // namespace hil
