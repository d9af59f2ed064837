// cortex_m::quantized_activation.out(input, lut, out): out = lut[input + 128].
#include "kernels/checks.h"
#include "kernels/isa.h"
#include "kernels/layout.h"
#include "kernels/operator.h"
#include "kernels/quantized_activation_helium.h"
#include "kernels/quantized_activation_scalar.h"

namespace hil {

namespace {

constexpr size_t kEntries = 256;

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
  isa::look_up(input.as<int8_t>(), table.as<int8_t>(), out.as<int8_t>(), out.numel);
  return Error::Ok;
}
HIL_OPERATOR("cortex_m::quantized_activation.out", op_quantized_activation);

}  // namespace hil
