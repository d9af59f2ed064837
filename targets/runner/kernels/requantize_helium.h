// The output stage of four accumulators at a time, on Helium.
#pragma once

#include <arm_mve.h>

#include "kernels/requantize.h"

namespace hil {

template <Rounding R>
inline int32x4_t requantize(int32x4_t value, int32x4_t multiplier, int32x4_t shift) {
  if constexpr (R == Rounding::Exact) {
    int32_t v[4], m[4], s[4];
    vst1q_s32(v, value);
    vst1q_s32(m, multiplier);
    vst1q_s32(s, shift);
    for (int i = 0; i < 4; ++i) v[i] = requantize(v[i], m[i], s[i]);
    return vld1q_s32(v);
  }
  int32x4_t high = vqrdmulhq_s32(value, multiplier);
  if constexpr (R == Rounding::Away) {
    // vrshl rounds half up: take 1 from negative values that will be shifted.
    high = vqaddq_s32(high, vshrq_n_s32(vandq_s32(high, shift), 31));
  }
  return vrshlq_s32(high, shift);
}

/// The output stage of four accumulators. The constants come one by one: kept in
/// a struct, gcc 12 reloads them from the stack after every asm statement.
template <Rounding R>
inline int32x4_t to_output(int32x4_t accumulators, int32x4_t multiplier, int32x4_t shift,
                           int32_t offset, int32x4_t min, int32x4_t max) {
  const int32x4_t scaled = requantize<R>(accumulators, multiplier, shift);
  return vminq_s32(vmaxq_s32(vaddq_n_s32(scaled, offset), min), max);
}

/// Scales of four channels; `lanes` selects those that exist.
inline int32x4_t load_multipliers(const OutputStage& stage, size_t channel, mve_pred16_t lanes) {
  return vldrwq_z_s32(stage.multipliers + channel * stage.step, lanes);
}
inline int32x4_t load_shifts(const OutputStage& stage, size_t channel, mve_pred16_t lanes) {
  return vldrwq_z_s32(stage.shifts + channel * stage.step, lanes);
}

}  // namespace hil
