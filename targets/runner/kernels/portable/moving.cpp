#include "kernels/portable/moving.h"

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

namespace {

/// A shape and its steps with as few dimensions as it takes to walk the same elements.
struct Walk {
  size_t rank = 0;
  size_t sizes[kMaxRank] = {};
  int64_t steps[kMaxRank] = {};

  Walk(const Shape& shape, const int64_t* own_steps) {
    for (size_t i = 0; i < shape.rank; ++i) add(shape.sizes[i], own_steps[i]);
  }

 private:
  /// A dimension of one element moves nothing; one whose outer neighbour goes on where it ends is
  /// part of that.
  void add(int64_t size, int64_t step) {
    if (size == 1) return;
    if (rank != 0 && steps[rank - 1] == size * step) {
      sizes[rank - 1] *= static_cast<size_t>(size);
    } else {
      sizes[rank++] = static_cast<size_t>(size);
    }
    steps[rank - 1] = step;
  }
};

}  // namespace

void move_by_steps(const Tensor& in, size_t first, const Shape& shape, const int64_t* steps,
                   Tensor& out) {
  const size_t count = shape.numel();
  if (count == 0) return;
  const Mover mover(in.type, out.type, true);
  const Walk walk(shape, steps);
  const size_t outer = walk.rank == 0 ? 0 : walk.rank - 1;  // dimensions around the row
  const size_t width = walk.rank == 0 ? 1 : walk.sizes[outer];
  const int64_t step = walk.rank == 0 ? 1 : walk.steps[outer];
  size_t index[kMaxRank] = {};
  int64_t from = static_cast<int64_t>(first);
  uint8_t* target = out.data;
  for (size_t rows = count / width; rows != 0; --rows, target += width * mover.out_size()) {
    mover.move_row(in.data + static_cast<size_t>(from) * mover.in_size(), step, target, width);
    for (size_t d = outer; d-- > 0;) {
      from += walk.steps[d];
      if (++index[d] < walk.sizes[d]) break;
      from -= static_cast<int64_t>(walk.sizes[d]) * walk.steps[d];
      index[d] = 0;
    }
  }
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
