// Where the elements of a dense tensor are: strides from its dim order.
#pragma once

#include "core/tensor.h"

namespace hil {

/// Elements between neighbours along each logical dimension.
struct Strides {
  int32_t step[kMaxRank];  // the tensor's rank of them
};

Strides strides_of(const Tensor& t);

/// same_layout when dim orders differ: extents of 1 have none.
bool same_strides(const Tensor& a, const Tensor& b);

/// Same sizes, and equal coordinates are at equal offsets.
inline bool same_layout(const Tensor& a, const Tensor& b) {
  if (a.rank != b.rank) return false;
  bool same_order = true;
  for (size_t i = 0; i < a.rank; ++i) {
    if (a.sizes[i] != b.sizes[i]) return false;
    same_order &= a.dim_order[i] == b.dim_order[i];
  }
  return same_order || same_strides(a, b);
}

/// A walk over up to kMaxRank nested loops, with the offsets of one destination
/// and two sources; the innermost loop is left to the caller.
struct Walk {
  struct Loop {
    int32_t count, out, a, b;
  };
  Loop loops[kMaxRank];
  size_t depth = 0;

  /// Outermost first. Loops of one step vanish; a loop that continues the one
  /// outside it in every operand is joined to it.
  void nest(Loop inner);

  /// Calls row(out_offset, a_offset, b_offset, innermost loop) for each row.
  template <typename Row>
  void each_row(Row row) const {
    const Loop single = {1, 0, 0, 0};
    const Loop inner = depth == 0 ? single : loops[depth - 1];
    const size_t outer_depth = depth == 0 ? 0 : depth - 1;
    for (size_t i = 0; i < depth; ++i) {
      if (loops[i].count == 0) return;
    }
    int32_t index[kMaxRank];
    for (size_t d = 0; d < outer_depth; ++d) index[d] = 0;
    int32_t out = 0, a = 0, b = 0;
    while (true) {
      row(out, a, b, inner);
      size_t d = outer_depth;
      while (d-- > 0) {
        out += loops[d].out, a += loops[d].a, b += loops[d].b;
        if (++index[d] < loops[d].count) break;
        out -= loops[d].out * index[d], a -= loops[d].a * index[d], b -= loops[d].b * index[d];
        index[d] = 0;
        if (d == 0) return;
      }
      if (outer_depth == 0) return;
    }
  }
};

}  // namespace hil
