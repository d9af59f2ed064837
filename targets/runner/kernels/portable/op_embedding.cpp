// aten::embedding.out(weight, indices, padding_idx, scale_grad_by_freq, sparse, out): rows of
// weight.
#include "kernels/bytes.h"
#include "kernels/elements.h"
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

namespace {

Error check_shapes(KernelContext& ctx, const Tensor& weight, const Tensor& indices,
                   const Tensor& out) {
  const bool plain = is_contiguous(weight) && is_contiguous(indices) && is_contiguous(out);
  bool fits = plain && weight.rank == 2 && out.rank == indices.rank + 1 &&
              out.sizes[out.rank - 1] == weight.sizes[1];
  for (size_t i = 0; fits && i < indices.rank; ++i) fits = out.sizes[i] == indices.sizes[i];
  if (fits) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "out is not the indices with a row of weight for each");
}

}  // namespace

Error op_embedding(KernelContext& ctx, Args args) {
  const Tensor& weight = ctx.tensor(args, 0);
  const Tensor& indices = ctx.tensor(args, 1);
  Tensor& out = ctx.tensor(args, 5);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_movable(ctx, weight, out));
  const bool wide = indices.type == ScalarType::Long;
  HIL_TRY(check_tensor(ctx, "indices", indices, wide ? ScalarType::Long : ScalarType::Int));
  HIL_TRY(check_shapes(ctx, weight, indices, out));
  const Load load = load_for(indices.type);
  const size_t row = static_cast<size_t>(weight.sizes[1]) * element_size(weight.type);
  for (size_t i = 0; i < indices.numel; ++i) {
    const int64_t index = load(indices.data + i * element_size(indices.type)).whole;
    if (index < 0 || index >= weight.sizes[0]) {
      return ctx.fail(Error::InvalidArgument, "index %u names no row of weight",
                      static_cast<unsigned>(i));
    }
    copy_bytes(out.data + i * row, weight.data + static_cast<size_t>(index) * row, row);
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::embedding.out", op_embedding);

}  // namespace hil
