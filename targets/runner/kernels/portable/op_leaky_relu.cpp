// aten::leaky_relu.out(self, negative_slope, out) for float.
#include "kernels/operator.h"
#include "kernels/portable/unary.h"

namespace hil {

Error op_leaky_relu(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const float slope = static_cast<float>(ctx.number(args, 1));
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  return for_each_float(ctx, self, out, [=](float x) { return x >= 0.0f ? x : x * slope; });
}
HIL_OPERATOR("aten::leaky_relu.out", op_leaky_relu);

}  // namespace hil
