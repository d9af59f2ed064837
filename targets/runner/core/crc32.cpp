#include "core/crc32.h"

namespace hil {

uint32_t crc32(uint32_t crc, Span<const uint8_t> bytes) {
  // The reversed polynomial 0xedb88320 (zlib, crc32.c), four bits at a time.
  uint32_t table[16];
  for (uint32_t i = 0; i < 16; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 4; ++bit) {
      table[i] = (table[i] >> 1) ^ ((table[i] & 1) != 0 ? 0xedb88320U : 0);
    }
  }
  crc = ~crc;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    crc = (crc >> 4) ^ table[crc & 15];
    crc = (crc >> 4) ^ table[crc & 15];
  }
  return ~crc;
}

}  // namespace hil
