// A tensor as lines along one of its dimensions.
#pragma once

#include "kernels/layout.h"

namespace hil {

/// Where one line begins in the source and in two results.
struct LineStart {
  int32_t out, in, other;
};

/// Calls each(line start) for every line of `in` along `axis`; `out` and `other` have its rank or
/// lack the axis.
template <typename Each>
void each_line(const Tensor& in, size_t axis, const Tensor& out, const Tensor& other, Each each) {
  if (in.numel == 0) return;
  const Strides from = strides_of(in), to = strides_of(out), also = strides_of(other);
  const auto place = [&](const Tensor& t, size_t dim) {
    return t.rank == in.rank || dim < axis ? dim : dim - 1;
  };
  Walk walk;
  for (size_t i = 0; i < in.rank; ++i) {
    const size_t dim = in.dim_order[i];
    if (dim == axis) continue;
    walk.nest(
        {in.sizes[dim], to.step[place(out, dim)], from.step[dim], also.step[place(other, dim)]});
  }
  walk.each_row([&](int32_t o, int32_t a, int32_t b, const Walk::Loop& loop) {
    for (int32_t n = 0; n < loop.count; ++n) {
      each(LineStart{o + n * loop.out, a + n * loop.a, b + n * loop.b});
    }
  });
}

/// The sizes of `in` but for those of `axis`, which is `extent`, or is left out when it is
/// negative.
inline bool line_shape(const Tensor& in, size_t axis, int32_t extent, const Tensor& out) {
  const bool gone = extent < 0 && out.rank + 1 == in.rank;
  if (!gone && (extent < 0 || out.rank != in.rank)) return false;
  for (size_t dim = 0; dim < in.rank; ++dim) {
    if (dim == axis && gone) continue;
    const size_t at = gone && dim > axis ? dim - 1 : dim;
    if (out.sizes[at] != (dim == axis ? extent : in.sizes[dim])) return false;
  }
  return true;
}

}  // namespace hil
