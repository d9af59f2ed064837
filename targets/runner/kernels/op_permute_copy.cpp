// aten::permute_copy.out(self, dims, out)
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

Error op_permute_copy(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  int32_t dims[kMaxRank];
  const size_t count = ctx.int_list_upto(args, 1, dims, kMaxRank);
  Tensor& out = ctx.tensor(args, 2);
  return ctx.ok() ? permute(ctx, self, dims, count, out) : ctx.argument_error();
}
HIL_OPERATOR("aten::permute_copy.out", op_permute_copy);

}  // namespace hil
