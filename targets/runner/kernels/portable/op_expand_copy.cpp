// aten::expand_copy.out(self, size, implicit, out): dimensions of extent 1 repeated, and new ones
// in front. A size of -1 is that of self.
#include "kernels/broadcast.h"
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

Error op_expand_copy(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  int32_t sizes[kMaxRank];
  const size_t rank = ctx.int_list_upto(args, 1, sizes, kMaxRank);
  Tensor& out = ctx.tensor(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_movable(ctx, self, out));
  int32_t steps[kMaxRank];
  bool fits = rank == out.rank && broadcast_steps(self, out, steps);
  for (size_t i = 0; fits && i < rank; ++i) {
    const size_t added = rank - self.rank;
    const int32_t own = i < added ? -1 : self.sizes[i - added];
    fits = out.sizes[i] == (sizes[i] == -1 ? own : sizes[i]);
  }
  if (!fits) return ctx.fail(Error::InvalidArgument, "out is not self expanded to the size");
  const Strides to = strides_of(out);
  Walk walk;
  for (size_t i = 0; i < out.rank; ++i) {
    const size_t dim = out.dim_order[i];
    walk.nest({out.sizes[dim], to.step[dim], steps[dim], 0});
  }
  if (out.numel != 0) move_all(walk, self.data, out.data, element_size(out.type));
  return Error::Ok;
}
HIL_OPERATOR("aten::expand_copy.out", op_expand_copy);

}  // namespace hil
