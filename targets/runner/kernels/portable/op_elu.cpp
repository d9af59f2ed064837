// aten::elu.out(self, alpha, scale, input_scale, out) for float, within two units in the last place
// of torch's.
#include "kernels/operator.h"
#include "kernels/portable/curves.h"
#include "kernels/portable/unary.h"

namespace hil {

Error op_elu(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const float alpha = static_cast<float>(ctx.number(args, 1));
  const float scale = static_cast<float>(ctx.number(args, 2));
  const float input_scale = static_cast<float>(ctx.number(args, 3));
  Tensor& out = ctx.tensor(args, 4);
  if (!ctx.ok()) return ctx.argument_error();
  if (!(input_scale >= 0.0f)) return ctx.fail(Error::InvalidArgument, "input_scale is negative");
  const float negative = alpha * scale;
  return for_each_float(ctx, self, out, [=](float x) {
    return x > 0.0f ? x * scale : exponential_less_one(x * input_scale) * negative;
  });
}
HIL_OPERATOR("aten::elu.out", op_elu);

}  // namespace hil
