#include "kernels/broadcast.h"

namespace hil {

Error broadcast_walk(KernelContext& ctx, const Tensor& a, const Tensor& b, const Tensor& out,
                            Walk* walk) {
  const Strides so = strides_of(out), sa = strides_of(a), sb = strides_of(b);
  const auto step = [&](const Tensor& t, const Strides& s, size_t dim, int32_t size, bool* fits) {
    if (dim + t.rank < out.rank) return int32_t{0};
    const size_t own = dim + t.rank - out.rank;
    if (t.sizes[own] == size) return size == 1 ? 0 : s.step[own];
    *fits = *fits && t.sizes[own] == 1;
    return int32_t{0};
  };
  bool fits = a.rank <= out.rank && b.rank <= out.rank;
  size_t numel = 1;
  for (size_t i = 0; fits && i < out.rank; ++i) {
    const size_t dim = out.dim_order[i];
    const int32_t size = out.sizes[dim];
    const int32_t step_a = step(a, sa, dim, size, &fits), step_b = step(b, sb, dim, size, &fits);
    const bool from_an_operand = size == 1 || step_a != 0 || step_b != 0 || size == 0;
    fits = fits && from_an_operand;
    numel *= static_cast<size_t>(size);
    walk->nest({size, so.step[dim], step_a, step_b});
  }
  if (fits && numel == out.numel) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "out is not the broadcast of self and other");
}

}  // namespace hil
