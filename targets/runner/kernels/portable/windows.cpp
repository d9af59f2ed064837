#include "kernels/portable/windows.h"

namespace hil {

Planes::Planes(const Tensor& t, size_t sides, bool batched) {
  const Steps steps = steps_of(t);
  const size_t c = batched ? 1 : 0, y = c + 1, x = c + sides;
  batches = batched ? t.sizes[0] : 1;
  channels = t.sizes[c];
  height = sides == 2 ? t.sizes[y] : 1;
  width = t.sizes[x];
  batch_step = batched ? steps.of[0] : 0;
  channel_step = steps.of[c];
  row_step = sides == 2 ? steps.of[y] : 0;
  step = steps.of[x];
}

Error require_sides(KernelContext& ctx, const Ints& list, size_t sides, int64_t least,
                    bool may_be_empty, const char* what) {
  const size_t size = list.size();
  HIL_REQUIRE(size == 1 || size == sides || (may_be_empty && size == 0), what);
  for (size_t i = 0; i < size; ++i) HIL_REQUIRE(list[i] >= least, what);
  return Error::Ok;
}

int64_t positions(const Side& side, bool ceil_mode) {
  const int64_t reach = side.dilation * (side.kernel - 1) + 1;
  const int64_t room = side.in + 2 * side.padding - reach + (ceil_mode ? side.stride - 1 : 0);
  const int64_t count = room / side.stride + 1;
  const bool starts_outside = (count - 1) * side.stride >= side.in + side.padding;
  return ceil_mode && starts_outside ? count - 1 : count;
}

Error require_extents(KernelContext& ctx, const Shape& shape, size_t sides) {
  for (size_t d = 0; d < shape.rank; ++d) {
    HIL_REQUIRE(shape.sizes[d] >= (d + sides < shape.rank ? 0 : 1), "the result would be empty");
  }
  return Error::Ok;
}

}  // namespace hil
