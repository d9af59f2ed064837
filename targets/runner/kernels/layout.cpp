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

}  // namespace hil
