// aten::cat.out(tensors, dim, out). An empty tensor of rank 1 counts for nothing.
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

namespace {

bool is_nothing(const Tensor& t) { return t.rank == 1 && t.sizes[0] == 0; }

bool fits(const Tensor& piece, const Tensor& out, size_t axis) {
  if (piece.rank != out.rank) return false;
  for (size_t i = 0; i < out.rank; ++i) {
    if (i != axis && piece.sizes[i] != out.sizes[i]) return false;
  }
  return true;
}

}  // namespace

Error op_cat(KernelContext& ctx, Args args) {
  const Span<Value* const> pieces = ctx.tensor_list(args, 0);
  const int32_t dim = ctx.int32(args, 1);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  size_t axis;
  HIL_TRY(check_dim(ctx, dim, out.rank, &axis));
  int64_t total = 0;
  for (const Value* piece : pieces) {
    const Tensor& t = piece->tensor;
    HIL_TRY(check_movable(ctx, t, out));
    if (is_nothing(t)) continue;
    if (!fits(t, out, axis)) {
      return ctx.fail(Error::InvalidArgument, "a tensor differs from out beyond dimension %u",
                      static_cast<unsigned>(axis));
    }
    total += t.sizes[axis];
  }
  if (total != out.sizes[axis]) {
    return ctx.fail(Error::InvalidArgument, "the tensors have %lld in dimension %u, out has %ld",
                    static_cast<long long>(total), static_cast<unsigned>(axis),
                    static_cast<long>(out.sizes[axis]));
  }
  const size_t step = static_cast<size_t>(strides_of(out).step[axis]);
  size_t first = 0;
  for (const Value* piece : pieces) {
    if (is_nothing(piece->tensor)) continue;
    place(piece->tensor, out, first);
    first += static_cast<size_t>(piece->tensor.sizes[axis]) * step;
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::cat.out", op_cat);

}  // namespace hil
