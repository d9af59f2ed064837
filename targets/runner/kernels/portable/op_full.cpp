// aten::full.out(size, fill_value, out).
#include "kernels/operator.h"
#include "kernels/portable/fill.h"

namespace hil {

Error op_full(KernelContext& ctx, Args args) {
  int32_t sizes[kMaxRank];
  const size_t rank = ctx.int_list_upto(args, 0, sizes, kMaxRank);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  bool fits = rank == out.rank;
  for (size_t i = 0; fits && i < rank; ++i) fits = sizes[i] == out.sizes[i];
  if (!fits) return ctx.fail(Error::InvalidArgument, "out does not have the size");
  return fill(ctx, args, 1, out);
}
HIL_OPERATOR("aten::full.out", op_full);

}  // namespace hil
