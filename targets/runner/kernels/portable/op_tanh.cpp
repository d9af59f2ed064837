// aten::tanh.out(self, out) for float, within two units in the last place of torch's.
#include "kernels/operator.h"
#include "kernels/portable/curves.h"
#include "kernels/portable/unary.h"

namespace hil {

Error op_tanh(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  Tensor& out = ctx.tensor(args, 1);
  if (!ctx.ok()) return ctx.argument_error();
  return for_each_float(ctx, self, out, hyperbolic_tangent);
}
HIL_OPERATOR("aten::tanh.out", op_tanh);

}  // namespace hil
