// A row of the minima or maxima of int8 values.
#pragma once

#include "kernels/layout.h"

namespace hil::scalar {

struct Minimum {
  int8_t operator()(int8_t a, int8_t b) const { return a < b ? a : b; }
};
struct Maximum {
  int8_t operator()(int8_t a, int8_t b) const { return a > b ? a : b; }
};

template <typename Choose>
void choose_row(const int8_t* a, const int8_t* b, int8_t* out, const Walk::Loop& loop) {
  const Choose choose;
  for (int32_t i = 0; i < loop.count; ++i) out[i * loop.out] = choose(a[i * loop.a], b[i * loop.b]);
}

}  // namespace hil::scalar
