#pragma once

#include "core/span.h"

namespace hil {

/// CRC-32 (IEEE 802.3, as Python's `zlib.crc32`) of `bytes` after those that gave `crc`; 0 at the
/// start.
uint32_t crc32(uint32_t crc, Span<const uint8_t> bytes);

}  // namespace hil
