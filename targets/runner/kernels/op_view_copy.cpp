// aten::view_copy.out(self, size, out): the same elements in logical order under another shape.
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

Error op_view_copy(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  return reshape(ctx, self, out);
}
HIL_OPERATOR("aten::view_copy.out", op_view_copy);

}  // namespace hil
