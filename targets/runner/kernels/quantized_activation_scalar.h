// The look-up of cortex_m::quantized_activation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hil::scalar {

/// out = table[in + 128].
inline void look_up(const int8_t* in, const int8_t* table, int8_t* out, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = table[in[i] + 128];
}

}  // namespace hil::scalar
