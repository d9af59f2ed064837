// aten::topk.values(self, k, dim, largest, sorted, values, indices).
//
// Which of equal elements is taken, and in which order, is what ExecuTorch's and torch's kernels
// leave to the standard library's algorithms; the same ones are used here.
#include <algorithm>

#include "kernels/operator.h"
#include "kernels/ranking.h"

namespace hil {

namespace {

constexpr size_t kFew = 64;  // the line is at least so many times as long as what is wanted

template <bool Sorted>
void take(Span<Ranked> ranks, size_t wanted) {
  if (wanted * kFew <= ranks.size()) {
    return std::partial_sort(ranks.begin(), ranks.begin() + wanted, ranks.end());
  }
  std::nth_element(ranks.begin(), ranks.begin() + wanted - 1, ranks.end());
  if (Sorted) std::sort(ranks.begin(), ranks.begin() + wanted - 1);
}

}  // namespace

Error op_topk(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  int32_t numbers[2];  // k, dim
  ctx.integers(args, 1, numbers, 2);
  const bool largest = ctx.boolean(args, 3), sorted = ctx.boolean(args, 4);
  Tensor& values = ctx.tensor(args, 5);
  Tensor& indices = ctx.tensor(args, 6);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_range(ctx, "k", numbers[0], 0, INT32_MAX));
  const Ranking ranking = {self, numbers[1], largest, numbers[0], values, indices};
  return rank_lines(ctx, ranking, sorted ? take<true> : take<false>);
}
HIL_OPERATOR("aten::topk.values", op_topk);

}  // namespace hil
