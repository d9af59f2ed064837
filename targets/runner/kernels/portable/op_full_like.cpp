// aten::full_like.out(self, fill_value, memory_format?, out).
#include "kernels/operator.h"
#include "kernels/portable/fill.h"
#include "kernels/portable/unary.h"

namespace hil {

Error op_full_like(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  Tensor& out = ctx.tensor(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_same_layout(ctx, self, out));
  return fill(ctx, args, 1, out);
}
HIL_OPERATOR("aten::full_like.out", op_full_like);

}  // namespace hil
