// Where the elements of a dense tensor are: strides from its dim order.
#pragma once

#include "core/tensor.h"

namespace hil {

/// Elements between neighbours along each logical dimension.
struct Strides {
  int32_t step[kMaxRank] = {};
};

inline Strides strides_of(const Tensor& t) {
  Strides s;
  int32_t step = 1;
  for (size_t i = t.rank; i-- > 0;) {
    s.step[t.dim_order[i]] = step;
    step *= t.sizes[t.dim_order[i]] == 0 ? 1 : t.sizes[t.dim_order[i]];
  }
  return s;
}

/// Same sizes, and equal coordinates are at equal offsets.
inline bool same_layout(const Tensor& a, const Tensor& b) {
  if (a.rank != b.rank) return false;
  const Strides sa = strides_of(a), sb = strides_of(b);
  for (size_t i = 0; i < a.rank; ++i) {
    if (a.sizes[i] != b.sizes[i]) return false;
    if (a.sizes[i] > 1 && sa.step[i] != sb.step[i]) return false;
  }
  return true;
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
  void nest(Loop inner) {
    if (inner.count == 1) return;
    if (depth > 0) {
      Loop& outer = loops[depth - 1];
      if (outer.out == inner.out * inner.count && outer.a == inner.a * inner.count &&
          outer.b == inner.b * inner.count) {
        outer = {outer.count * inner.count, inner.out, inner.a, inner.b};
        return;
      }
    }
    loops[depth++] = inner;
  }

  /// Calls row(out_offset, a_offset, b_offset, innermost loop) for each row.
  template <typename Row>
  void each_row(Row row) const {
    const Loop single = {1, 0, 0, 0};
    const Loop inner = depth == 0 ? single : loops[depth - 1];
    const size_t outer_depth = depth == 0 ? 0 : depth - 1;
    for (size_t i = 0; i < depth; ++i) {
      if (loops[i].count == 0) return;
    }
    int32_t index[kMaxRank] = {};
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
