// A row of cortex_m::quantized_add.
#pragma once

#include "kernels/requantize.h"

namespace hil {

constexpr int kHeadroom = 20;  // SHIFT_INT8 of passes_utils.py

struct Operand {
  int32_t zero_point, multiplier, shift;

  int32_t rescale(int8_t value) const {
    const int32_t centred = static_cast<int32_t>(value) - zero_point;
    return requantize(wrapping_multiply(centred, 1 << kHeadroom), multiplier, shift);
  }
};

struct Addition {
  Operand a, b;
  OutputStage stage;

  int8_t operator()(int8_t x, int8_t y) const {
    return to_output(wrapping_add(a.rescale(x), b.rescale(y)), stage, 0);
  }
};

namespace scalar {

inline void add_row(const Addition& add, const int8_t* a, const int8_t* b, int8_t* out,
                    size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = add(a[i], b[i]);
}

}  // namespace scalar

}  // namespace hil
