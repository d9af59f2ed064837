// Little-endian words at any address.
#pragma once

#include <cstdint>

namespace hil::ethosu {

inline uint32_t uint32_at(const uint8_t* at) {
  return uint32_t{at[0]} | uint32_t{at[1]} << 8 | uint32_t{at[2]} << 16 | uint32_t{at[3]} << 24;
}

inline int32_t int32_at(const uint8_t* at) { return static_cast<int32_t>(uint32_at(at)); }

}  // namespace hil::ethosu
