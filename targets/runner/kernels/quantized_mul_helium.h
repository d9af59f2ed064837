// A row of cortex_m::quantized_mul, four lanes at a time.
#pragma once

#if defined(__ARM_FEATURE_MVE)

#include <arm_mve.h>

#include "kernels/quantized_mul_scalar.h"
#include "kernels/requantize_helium.h"

namespace hil::helium {

/// For a scale that shifts right.
inline void multiply_lanes(const Product& p, const int8_t* a, const int8_t* b, int8_t* out,
                           size_t count) {
  const int32x4_t multiplier = vdupq_n_s32(*p.stage.multipliers);
  const int32x4_t shift = vdupq_n_s32(*p.stage.shifts);
  const int32x4_t low = vdupq_n_s32(p.stage.min), high = vdupq_n_s32(p.stage.max);
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(count - i);
    const int32x4_t x = vsubq_n_s32(vldrbq_z_s32(a + i, lanes), p.zero_a);
    const int32x4_t y = vsubq_n_s32(vldrbq_z_s32(b + i, lanes), p.zero_b);
    const int32x4_t bytes =
        to_output<Rounding::Away>(vmulq_s32(x, y), multiplier, shift, p.stage.offset, low, high);
    vstrbq_p_s32(out + i, bytes, lanes);
  }
}

inline void multiply_row(const Product& p, const int8_t* a, const int8_t* b, int8_t* out,
                         size_t count) {
  if (vector_scale(*p.stage.multipliers, *p.stage.shifts)) {
    multiply_lanes(p, a, b, out, count);
  } else {
    scalar::multiply_row(p, a, b, out, count);
  }
}

}  // namespace hil::helium

#endif
