// cortex_m::quantized_activation.out(input, lut, out): out = lut[input + 128].
#include "kernels/checks.h"
#include "kernels/layout.h"
#include "kernels/operator.h"

namespace hil {

namespace {

constexpr size_t kEntries = 256;

void look_up(const int8_t* in, const int8_t* table, int8_t* out, size_t count) {
#if defined(__ARM_FEATURE_MVE)
  const uint8x16_t middle = vdupq_n_u8(128);
  for (size_t i = 0; i < count; i += 16) {
    const mve_pred16_t lanes = vctp8q(count - i);
    const uint8x16_t values = vreinterpretq_u8_s8(vldrbq_z_s8(in + i, lanes));
    vstrbq_p_s8(out + i, vldrbq_gather_offset_z_s8(table, veorq_u8(values, middle), lanes), lanes);
  }
#else
  for (size_t i = 0; i < count; ++i) out[i] = table[in[i] + 128];
#endif
}

}  // namespace

Error op_quantized_activation(KernelContext& ctx, Args args) {
  const Tensor& input = ctx.tensor(args, 0);
  const Tensor& table = ctx.tensor(args, 1);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "input", input, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "lut", table, ScalarType::Char));
  HIL_TRY(check_numel(ctx, "lut", table, kEntries));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Char));
  if (!same_layout(input, out)) {
    return ctx.fail(Error::InvalidArgument, "input and out differ in shape or dim order");
  }
  look_up(input.as<int8_t>(), table.as<int8_t>(), out.as<int8_t>(), out.numel);
  return Error::Ok;
}
HIL_OPERATOR("cortex_m::quantized_activation.out", op_quantized_activation);

}  // namespace hil
