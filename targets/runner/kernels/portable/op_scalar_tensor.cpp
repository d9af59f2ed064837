// aten::scalar_tensor.out(s, out): a tensor of rank 0 from a number or bool.
#include "kernels/operator.h"
#include "kernels/portable/fill.h"

namespace hil {

Error op_scalar_tensor(KernelContext& ctx, Args args) {
  Tensor& out = ctx.tensor(args, 1);
  if (!ctx.ok()) return ctx.argument_error();
  if (out.rank != 0) return ctx.fail(Error::InvalidArgument, "out has dimensions");
  return fill(ctx, args, 0, out);
}
HIL_OPERATOR("aten::scalar_tensor.out", op_scalar_tensor);

}  // namespace hil
