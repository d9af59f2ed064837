// aten::sort.values(self, dim, descending, values, indices). Equal elements keep their order.
#include <algorithm>

#include "kernels/operator.h"
#include "kernels/ranking.h"

namespace hil {

namespace {

void sort_line(Span<Ranked> ranks, size_t) {
  std::sort(ranks.begin(), ranks.end(), [](const Ranked& a, const Ranked& b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
  });
}

}  // namespace

Error op_sort(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const int32_t dim = ctx.int32(args, 1);
  const bool descending = ctx.boolean(args, 2);
  Tensor& values = ctx.tensor(args, 3);
  Tensor& indices = ctx.tensor(args, 4);
  if (!ctx.ok()) return ctx.argument_error();
  return rank_lines(ctx, {self, dim, descending, -1, values, indices}, sort_line);
}
HIL_OPERATOR("aten::sort.values", op_sort);

}  // namespace hil
