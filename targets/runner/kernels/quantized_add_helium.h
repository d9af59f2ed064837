// A row of cortex_m::quantized_add, four lanes at a time.
#pragma once

#if defined(__ARM_FEATURE_MVE)

#include <arm_mve.h>

#include "kernels/quantized_add_scalar.h"

namespace hil::helium {

/// A scale known to shift right, with everything but the data in general registers.
struct Rescale {
  int32_t multiplier, shift;
  int32_t sign_weight;  // 1 when there is a shift to round, 0 otherwise

  Rescale(int32_t m, int32_t s) : multiplier(m), shift(s), sign_weight(s < 0 ? 1 : 0) {}

  /// Not for INT32_MIN: the sums here are far from it.
  int32x4_t operator()(int32x4_t value) const {
    const int32x4_t high = vqrdmulhq_n_s32(value, multiplier);
    return vrshlq_n_s32(vmlaq_n_s32(high, vshrq_n_s32(high, 31), sign_weight), shift);
  }
};

/// False when the scales do not suit.
inline bool add_lanes(const Addition& add, const int8_t* a, const int8_t* b, int8_t* out,
                      size_t count) {
  const OutputStage& stage = add.stage;
  const auto within = [](const Operand& o) {
    return vector_scale(o.multiplier, o.shift) && o.zero_point >= -128 && o.zero_point <= 127;
  };
  if (!within(add.a) || !within(add.b) || !vector_scale(*stage.multipliers, *stage.shifts)) {
    return false;
  }
  const Rescale scale_a(add.a.multiplier, add.a.shift), scale_b(add.b.multiplier, add.b.shift);
  const Rescale scale_out(*stage.multipliers, *stage.shifts);
  const int32x4_t low = vdupq_n_s32(stage.min), high = vdupq_n_s32(stage.max);
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(count - i);
    const int32x4_t x = vsubq_n_s32(vldrbq_z_s32(a + i, lanes), add.a.zero_point);
    const int32x4_t y = vsubq_n_s32(vldrbq_z_s32(b + i, lanes), add.b.zero_point);
    const int32x4_t sum =
        vaddq_s32(scale_a(vshlq_n_s32(x, kHeadroom)), scale_b(vshlq_n_s32(y, kHeadroom)));
    const int32x4_t moved = vaddq_n_s32(scale_out(sum), stage.offset);
    vstrbq_p_s32(out + i, vminq_s32(vmaxq_s32(moved, low), high), lanes);
  }
  return true;
}

inline void add_row(const Addition& add, const int8_t* a, const int8_t* b, int8_t* out,
                    size_t count) {
  if (!add_lanes(add, a, b, out, count)) scalar::add_row(add, a, b, out, count);
}

}  // namespace hil::helium

#endif
