// A row of cortex_m::quantized_mul.
#pragma once

#include "kernels/requantize.h"

namespace hil {

struct Product {
  int32_t zero_a, zero_b;
  OutputStage stage;
};

namespace scalar {

inline void multiply_row(const Product& p, const int8_t* a, const int8_t* b, int8_t* out,
                         size_t count) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = to_output(wrapping_multiply(a[i] - p.zero_a, b[i] - p.zero_b), p.stage, 0);
  }
}

}  // namespace scalar

}  // namespace hil
