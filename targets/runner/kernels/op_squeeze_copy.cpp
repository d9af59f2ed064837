// aten::squeeze_copy.dims_out(self, dims, out): without those of the dimensions that have extent 1.
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

Error op_squeeze_copy(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  int32_t dims[kMaxRank];
  const size_t count = ctx.int_list_upto(args, 1, dims, kMaxRank);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  uint32_t named = 0;
  for (size_t i = 0; i < count; ++i) {
    size_t axis;
    HIL_TRY(check_dim(ctx, dims[i], self.rank, &axis));
    named |= 1u << axis;
  }
  size_t kept = 0;
  bool fits = true;
  for (size_t i = 0; i < self.rank; ++i) {
    if ((named >> i & 1) != 0 && self.sizes[i] == 1) continue;
    fits = fits && kept < out.rank && out.sizes[kept] == self.sizes[i];
    ++kept;
  }
  if (!fits || kept != out.rank) {
    return ctx.fail(Error::InvalidArgument, "out is not self without the dimensions");
  }
  return reshape(ctx, self, out);
}
HIL_OPERATOR("aten::squeeze_copy.dims_out", op_squeeze_copy);

}  // namespace hil
