#include "kernels/broadcast.h"

namespace hil {

bool broadcast_steps(const Tensor& t, const Tensor& out, int32_t* steps) {
  if (t.rank > out.rank) return false;
  const Strides strides = strides_of(t);
  const size_t first = static_cast<size_t>(out.rank - t.rank);
  for (size_t dim = 0; dim < out.rank; ++dim) {
    steps[dim] = 0;
    if (dim < first || t.sizes[dim - first] == 1) continue;
    if (t.sizes[dim - first] != out.sizes[dim]) return false;
    steps[dim] = strides.step[dim - first];
  }
  return true;
}

Error broadcast_error(KernelContext& ctx) {
  return ctx.fail(Error::InvalidArgument, "out is not the broadcast of self and other");
}

Error broadcast_walk(KernelContext& ctx, const Tensor& a, const Tensor& b, const Tensor& out,
                     Walk* walk) {
  int32_t steps_a[kMaxRank], steps_b[kMaxRank];
  bool fits = broadcast_steps(a, out, steps_a) && broadcast_steps(b, out, steps_b);
  const Strides to = strides_of(out);
  for (size_t i = 0; fits && i < out.rank; ++i) {
    const size_t dim = out.dim_order[i];
    const int32_t size = out.sizes[dim];
    const bool from_an_operand = size <= 1 || steps_a[dim] != 0 || steps_b[dim] != 0;
    fits = from_an_operand;
    walk->nest({size, to.step[dim], steps_a[dim], steps_b[dim]});
  }
  return fits ? Error::Ok : broadcast_error(ctx);
}

}  // namespace hil
