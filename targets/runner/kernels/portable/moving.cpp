#include "kernels/portable/moving.h"

#include "kernels/layout.h"

namespace hil {

Steps plain_steps(const Shape& shape) {
  Steps steps = {};
  int64_t step = 1;
  for (size_t i = shape.rank; i-- > 0;) {
    steps.of[i] = step;
    step *= shape.sizes[i];
  }
  return steps;
}

void move_by_steps(const Tensor& in, size_t first, const Shape& shape, const int64_t* steps,
                   Tensor& out) {
  if (shape.numel() == 0) return;  // the steps of an empty shape may be any
  const Mover mover(in.type, out.type, true);
  const Steps to = plain_steps(shape);
  Walk walk;
  for (size_t i = 0; i < shape.rank; ++i) {
    walk.nest({static_cast<int32_t>(shape.sizes[i]), static_cast<int32_t>(to.of[i]),
               static_cast<int32_t>(steps[i]), 0});
  }
  const uint8_t* source = in.data + first * mover.in_size();
  walk.each_row([&](int32_t target, int32_t from, int32_t, const Walk::Loop& row) {
    mover.move_row(source + from * static_cast<ptrdiff_t>(mover.in_size()), row.a,
                   out.data + static_cast<size_t>(target) * mover.out_size(),
                   static_cast<size_t>(row.count));
  });
}

void move_slab(const Tensor& in, size_t in_first, size_t in_row, size_t in_step, Tensor& out,
               size_t out_first, size_t out_row, size_t out_step, const Slab& slab) {
  const Mover mover(in.type, out.type, true);
  for (size_t row = 0; row < slab.rows; ++row) {
    const size_t from = (row * in_row + in_first) * slab.inner;
    const size_t to = (row * out_row + out_first) * slab.inner;
    const uint8_t* source = in.data + from * mover.in_size();
    uint8_t* target = out.data + to * mover.out_size();
    if (in_step == 1 && out_step == 1) {
      mover.move_run(source, target, slab.count * slab.inner);
      continue;
    }
    for (size_t i = 0; i < slab.count; ++i) {
      mover.move_run(source + i * in_step * slab.inner * mover.in_size(),
                     target + i * out_step * slab.inner * mover.out_size(), slab.inner);
    }
  }
}

}  // namespace hil
