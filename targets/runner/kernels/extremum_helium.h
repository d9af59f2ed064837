// A row of the minima or maxima of int8 values, 16 at a time.
#pragma once

#if defined(__ARM_FEATURE_MVE)

#include <arm_mve.h>

#include "kernels/extremum_scalar.h"

namespace hil::helium {

struct Minimum : scalar::Minimum {
  using scalar::Minimum::operator();
  int8x16_t operator()(int8x16_t a, int8x16_t b) const { return vminq_s8(a, b); }
};
struct Maximum : scalar::Maximum {
  using scalar::Maximum::operator();
  int8x16_t operator()(int8x16_t a, int8x16_t b) const { return vmaxq_s8(a, b); }
};

template <typename Choose>
void choose_row(const int8_t* a, const int8_t* b, int8_t* out, const Walk::Loop& loop) {
  const Choose choose;
  if (loop.out != 1 || loop.a > 1 || loop.b > 1) {
    return scalar::choose_row<Choose>(a, b, out, loop);
  }
  for (int32_t i = 0; i < loop.count; i += 16) {
    const mve_pred16_t lanes = vctp8q(static_cast<uint32_t>(loop.count - i));
    const int8x16_t x = loop.a == 1 ? vldrbq_z_s8(a + i, lanes) : vdupq_n_s8(*a);
    const int8x16_t y = loop.b == 1 ? vldrbq_z_s8(b + i, lanes) : vdupq_n_s8(*b);
    vstrbq_p_s8(out + i, choose(x, y), lanes);
  }
}

}  // namespace hil::helium

#endif
