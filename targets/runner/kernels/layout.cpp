#include "kernels/layout.h"

namespace hil {

Strides strides_of(const Tensor& t) {
  Strides s;
  int32_t step = 1;
  for (size_t i = t.rank; i-- > 0;) {
    s.step[t.dim_order[i]] = step;
    step *= t.sizes[t.dim_order[i]] == 0 ? 1 : t.sizes[t.dim_order[i]];
  }
  return s;
}

bool same_strides(const Tensor& a, const Tensor& b) {
  const Strides sa = strides_of(a), sb = strides_of(b);
  for (size_t i = 0; i < a.rank; ++i) {
    if (a.sizes[i] > 1 && sa.step[i] != sb.step[i]) return false;
  }
  return true;
}

void Walk::nest(Loop inner) {
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

RowCursor::RowCursor(const Walk& walk) : walk_(walk) {
  for (size_t i = 0; i < walk.depth; ++i) at_row_ = at_row_ && walk.loops[i].count != 0;
  if (walk.depth == 0) return;
  depth_ = walk.depth - 1;
  row_ = walk.loops[depth_];
}

void RowCursor::next() {
  for (size_t d = depth_; d-- > 0;) {
    const Walk::Loop& loop = walk_.loops[d];
    out += loop.out, a += loop.a, b += loop.b;
    if (++index_[d] < loop.count) return;
    out -= loop.out * index_[d], a -= loop.a * index_[d], b -= loop.b * index_[d];
    index_[d] = 0;
  }
  at_row_ = false;
}

}  // namespace hil
