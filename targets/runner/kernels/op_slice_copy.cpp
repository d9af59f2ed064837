// aten::slice_copy.Tensor_out(self, dim, start?, end?, step, out): every step-th element of a
// dimension from start to before end, both counted from either end and cut to what there is.
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

namespace {

/// Where a bound lies in a dimension of `extent`; `absent` for None.
int64_t bound(KernelContext& ctx, Args args, size_t index, int64_t extent, int64_t absent) {
  if (index < args.size() && args[index]->tag == Tag::None) return absent;
  const int64_t said = ctx.integer(args, index);
  const int64_t from_front = said < 0 ? said + extent : said;
  if (from_front < 0) return 0;
  return from_front > extent ? extent : from_front;
}

}  // namespace

Error op_slice_copy(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const int32_t dim = ctx.int32(args, 1);
  const int64_t step = ctx.integer(args, 4);
  Tensor& out = ctx.tensor(args, 5);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_movable(ctx, self, out));
  size_t axis;
  HIL_TRY(check_dim(ctx, dim, self.rank, &axis));
  const int64_t extent = self.sizes[axis];
  const int64_t start = bound(ctx, args, 2, extent, 0), end = bound(ctx, args, 3, extent, extent);
  if (!ctx.ok()) return ctx.argument_error();
  if (step <= 0) return ctx.fail(Error::InvalidArgument, "step is not positive");
  const int64_t count = start < end ? (end - 1 - start) / step + 1 : 0;
  bool fits = out.rank == self.rank;
  for (size_t i = 0; fits && i < out.rank; ++i) {
    fits = out.sizes[i] == (i == axis ? count : self.sizes[i]);
  }
  if (!fits) return ctx.fail(Error::InvalidArgument, "out is not the slice of self");
  if (out.numel == 0) return Error::Ok;

  const Strides from = strides_of(self), to = strides_of(out);
  Walk walk;
  for (size_t i = 0; i < out.rank; ++i) {
    const size_t d = out.dim_order[i];
    // With one element there is no next one, and the step may be too large for an offset.
    const int32_t apart = d == axis && count > 1 ? static_cast<int32_t>(step) : 1;
    walk.nest({out.sizes[d], to.step[d], from.step[d] * apart, 0});
  }
  const size_t size = element_size(self.type);
  const size_t first = static_cast<size_t>(start * from.step[axis]);
  move_all(walk, self.data + first * size, out.data, size);
  return Error::Ok;
}
HIL_OPERATOR("aten::slice_copy.Tensor_out", op_slice_copy);

}  // namespace hil
