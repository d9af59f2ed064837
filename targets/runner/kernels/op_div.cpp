// aten::div.out(self, other, out) for float: the true quotient, also by 0.
#include "kernels/arithmetic.h"
#include "kernels/operator.h"

namespace hil {

Error op_div(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const Tensor& other = ctx.tensor(args, 1);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_operands(ctx, self, other, out));
  if (out.type != ScalarType::Float) return unsupported_type(ctx, out.type);
  Walk walk;
  HIL_TRY(broadcast_walk(ctx, self, other, out, &walk));
  if (out.numel == 0) return Error::Ok;
  for_each_pair<float>(walk, self, other, out, [](float a, float b) { return a / b; });
  return Error::Ok;
}
HIL_OPERATOR("aten::div.out", op_div);

}  // namespace hil
