// aten::where.self_out(condition, self, other, out) with broadcasting: self where the condition
// holds, other elsewhere.
#include "kernels/broadcast.h"
#include "kernels/bytes.h"
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

namespace {

/// Copies the elements of `from` whose condition is `wanted`.
Error choose(KernelContext& ctx, const Tensor& from, const Tensor& condition, bool wanted,
             Tensor& out) {
  HIL_TRY(check_movable(ctx, from, out));
  const int32_t size = static_cast<int32_t>(element_size(out.type));
  int32_t steps[kMaxRank], condition_steps[kMaxRank];
  if (!broadcast_steps(from, out, steps) || !broadcast_steps(condition, out, condition_steps)) {
    return broadcast_error(ctx);
  }
  const Strides to = strides_of(out);
  Walk walk;
  for (size_t i = 0; i < out.rank; ++i) {
    const size_t dim = out.dim_order[i];
    walk.nest({out.sizes[dim], to.step[dim], steps[dim], condition_steps[dim]});
  }
  walk.each_row([&](int32_t o, int32_t a, int32_t b, const Walk::Loop& loop) {
    for (int32_t i = 0; i < loop.count; ++i) {
      if ((condition.data[b + i * loop.b] != 0) != wanted) continue;
      copy_bytes(out.data + (o + i * loop.out) * size, from.data + (a + i * loop.a) * size,
                 static_cast<size_t>(size));
    }
  });
  return Error::Ok;
}

}  // namespace

Error op_where(KernelContext& ctx, Args args) {
  const Tensor& condition = ctx.tensor(args, 0);
  const Tensor& self = ctx.tensor(args, 1);
  const Tensor& other = ctx.tensor(args, 2);
  Tensor& out = ctx.tensor(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "condition", condition, ScalarType::Bool));
  HIL_TRY(choose(ctx, self, condition, true, out));
  return choose(ctx, other, condition, false, out);
}
HIL_OPERATOR("aten::where.self_out", op_where);

}  // namespace hil
