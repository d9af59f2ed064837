// The look-up of cortex_m::quantized_activation, 16 bytes at a time.
#pragma once

#if defined(__ARM_FEATURE_MVE)

#include <arm_mve.h>

#include <cstddef>
#include <cstdint>

namespace hil::helium {

inline void look_up(const int8_t* in, const int8_t* table, int8_t* out, size_t count) {
  const uint8x16_t middle = vdupq_n_u8(128);
  for (size_t i = 0; i < count; i += 16) {
    const mve_pred16_t lanes = vctp8q(count - i);
    const uint8x16_t values = vreinterpretq_u8_s8(vldrbq_z_s8(in + i, lanes));
    vstrbq_p_s8(out + i, vldrbq_gather_offset_z_s8(table, veorq_u8(values, middle), lanes), lanes);
  }
}

}  // namespace hil::helium

#endif
