// aten::view_copy.out(self, size, out): the same elements in logical order under another shape.
#include "kernels/move.h"
#include "kernels/operators.h"

namespace hil {

namespace {

/// Storage offset of the element at a row-major logical index.
size_t offset_of(const Tensor& t, const Strides& strides, size_t index) {
  size_t offset = 0;
  for (size_t dim = t.rank; dim-- > 0;) {
    const size_t size = static_cast<size_t>(t.sizes[dim]);
    offset += index % size * static_cast<size_t>(strides.step[dim]);
    index /= size;
  }
  return offset;
}

}  // namespace

Error op_view_copy(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_movable(ctx, self, out));
  HIL_TRY(check_numel(ctx, "out", out, self.numel));
  if (is_contiguous(self) && is_contiguous(out)) {
    copy_bytes(out.data, self.data, out.nbytes);
    return Error::Ok;
  }
  const Strides from = strides_of(self), to = strides_of(out);
  const size_t size = element_size(self.type);
  for (size_t i = 0; i < out.numel; ++i) {
    copy_bytes(out.data + offset_of(out, to, i) * size, self.data + offset_of(self, from, i) * size,
               size);
  }
  return Error::Ok;
}

}  // namespace hil
