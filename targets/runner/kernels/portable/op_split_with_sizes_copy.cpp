// aten::split_with_sizes_copy.out(self, split_sizes, dim, out[]): neighbouring pieces of a
// dimension.
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

namespace {

bool is_piece(const Tensor& piece, const Tensor& self, size_t axis, int32_t extent) {
  if (piece.rank != self.rank) return false;
  for (size_t i = 0; i < self.rank; ++i) {
    if (piece.sizes[i] != (i == axis ? extent : self.sizes[i])) return false;
  }
  return true;
}

/// Copies `piece.sizes[axis]` places of self, from element `first` of its storage on.
void take(const Tensor& self, size_t first, Tensor& piece) {
  const Strides from = strides_of(self), to = strides_of(piece);
  const size_t size = element_size(self.type);
  Walk walk;
  for (size_t i = 0; i < piece.rank; ++i) {
    const size_t dim = piece.dim_order[i];
    walk.nest({piece.sizes[dim], to.step[dim], from.step[dim], 0});
  }
  if (piece.numel != 0) move_all(walk, self.data + first * size, piece.data, size);
}

}  // namespace

Error op_split_with_sizes_copy(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const Span<Value* const> extents =
      args.size() > 1 && args[1]->tag == Tag::IntList ? args[1]->list : Span<Value* const>();
  const int32_t dim = ctx.int32(args, 2);
  const Span<Value* const> pieces = ctx.tensor_list(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  size_t axis;
  HIL_TRY(check_dim(ctx, dim, self.rank, &axis));
  if (extents.size() != pieces.size()) {
    return ctx.fail(Error::InvalidArgument, "there are not as many outputs as split sizes");
  }
  int64_t total = 0;
  for (const Value* extent : extents) {
    const int64_t left = self.sizes[axis] - total;
    total += extent->as_int >= 0 && extent->as_int <= left ? extent->as_int : left + 1;
  }
  if (total != self.sizes[axis]) {
    return ctx.fail(Error::InvalidArgument, "the split sizes do not add up to the dimension");
  }
  size_t first = 0;
  const size_t step = static_cast<size_t>(strides_of(self).step[axis]);
  for (size_t i = 0; i < pieces.size(); ++i) {
    Tensor& piece = pieces[i]->tensor;
    const int32_t extent = static_cast<int32_t>(extents[i]->as_int);
    HIL_TRY(check_movable(ctx, self, piece));
    if (!is_piece(piece, self, axis, extent)) {
      return ctx.fail(Error::InvalidArgument, "output %u is not that piece of self",
                      static_cast<unsigned>(i));
    }
    take(self, first * step, piece);
    first += static_cast<size_t>(extent);
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::split_with_sizes_copy.out", op_split_with_sizes_copy);

}  // namespace hil
