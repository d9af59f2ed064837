// aten::clone.out(self, memory_format?, out)
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

Error op_clone(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  Tensor& out = ctx.tensor(args, 2);
  return ctx.ok() ? clone(ctx, self, out) : ctx.argument_error();
}
HIL_OPERATOR("aten::clone.out", op_clone);

}  // namespace hil
