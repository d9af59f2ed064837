// dim_order_ops::_clone_dim_order.out(self, non_blocking, dim_order?, out); out
// carries the dim order that was asked for.
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

Error op_clone_dim_order(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  Tensor& out = ctx.tensor(args, 3);
  return ctx.ok() ? clone(ctx, self, out) : ctx.argument_error();
}
HIL_OPERATOR("dim_order_ops::_clone_dim_order.out", op_clone_dim_order);

}  // namespace hil
