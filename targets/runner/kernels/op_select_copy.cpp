// aten::select_copy.int_out(self, dim, index, out): one slice, without its dimension.
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

Error op_select_copy(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  int32_t numbers[2];  // dim, index
  ctx.integers(args, 1, numbers, 2);
  Tensor& out = ctx.tensor(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_movable(ctx, self, out));
  size_t axis;
  HIL_TRY(check_dim(ctx, numbers[0], self.rank, &axis));
  const int32_t extent = self.sizes[axis];
  if (extent == 0) return ctx.fail(Error::InvalidArgument, "self is empty");
  HIL_TRY(check_range(ctx, "index", numbers[1], -extent, extent - 1));
  const auto source = [&](size_t dim) { return dim < axis ? dim : dim + 1; };
  bool fits = out.rank + 1 == self.rank;
  for (size_t i = 0; fits && i < out.rank; ++i) fits = out.sizes[i] == self.sizes[source(i)];
  if (!fits) return ctx.fail(Error::InvalidArgument, "out is not a slice of self");
  if (out.numel == 0) return Error::Ok;

  const Strides from = strides_of(self), to = strides_of(out);
  Walk walk;
  for (size_t i = 0; i < out.rank; ++i) {
    const size_t dim = out.dim_order[i];
    walk.nest({out.sizes[dim], to.step[dim], from.step[source(dim)], 0});
  }
  const size_t index = static_cast<size_t>(numbers[1] < 0 ? numbers[1] + extent : numbers[1]);
  const size_t size = element_size(self.type);
  move_all(walk, self.data + index * static_cast<size_t>(from.step[axis]) * size, out.data, size);
  return Error::Ok;
}
HIL_OPERATOR("aten::select_copy.int_out", op_select_copy);

}  // namespace hil
