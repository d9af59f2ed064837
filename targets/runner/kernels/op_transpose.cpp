// cortex_m::transpose.out(input, perm, out)
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

Error op_transpose(KernelContext& ctx, Args args) {
  const Tensor& input = ctx.tensor(args, 0);
  int32_t perm[kMaxRank];
  const size_t count = ctx.int_list_upto(args, 1, perm, kMaxRank);
  Tensor& out = ctx.tensor(args, 2);
  return ctx.ok() ? permute(ctx, input, perm, count, out) : ctx.argument_error();
}
HIL_OPERATOR("cortex_m::transpose.out", op_transpose);

}  // namespace hil
