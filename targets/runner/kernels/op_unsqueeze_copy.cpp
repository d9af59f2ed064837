// aten::unsqueeze_copy.out(self, dim, out): a dimension of extent 1 more.
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

Error op_unsqueeze_copy(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  return reshape(ctx, self, out);
}
HIL_OPERATOR("aten::unsqueeze_copy.out", op_unsqueeze_copy);

}  // namespace hil
