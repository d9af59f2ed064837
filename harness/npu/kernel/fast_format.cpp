// Fields of the header as u85_weights.py has them, from ``mlw_encode_fwd.cpp`` (Vela 5.1.0).
#include "fast_format.h"

#include <cstring>

namespace {

constexpr int64_t kHeader = 32;
constexpr int kRaw = 1, kSmall = 2;
constexpr int kAdjust = 13;                 // byte of what is taken off raw weights
constexpr int kTable = 112, kEntries = 16;  // bits of the header: a sign and 8 bits of magnitude
constexpr int kEntryBits = 9;

int bits(const uint8_t* header, int at, int count) {
  int value = 0;
  for (int n = 0; n < count; ++n) {
    value |= (header[(at + n) / 8] >> ((at + n) % 8) & 1) << n;
  }
  return value;
}

template <int kItemBits>
void look_up(const int16_t* table, const uint8_t* items, int64_t count, int16_t* to) {
  constexpr int kFolds = 8 / kItemBits;
  int16_t of_byte[256][kFolds];
  for (int byte = 0; byte < 256; ++byte) {
    for (int n = 0; n < kFolds; ++n) {
      of_byte[byte][n] = table[byte >> (n * kItemBits) & ((1 << kItemBits) - 1)];
    }
  }
  for (int64_t n = 0; n < count; ++n) {
    std::memcpy(to + kFolds * n, of_byte[items[n]], sizeof of_byte[0]);
  }
}

}  // namespace

void hil_npu_decode_fast(const uint8_t* encoded, int64_t length, int16_t* to) {
  const uint8_t* items = encoded + kHeader;
  const int64_t count = length - kHeader;
  if ((encoded[0] & kRaw) != 0) {
    const int adjust = static_cast<int8_t>(encoded[kAdjust]);
    for (int64_t n = 0; n < count; ++n) {
      to[n] = static_cast<int16_t>(static_cast<int8_t>(items[n]) - adjust);
    }
    return;
  }
  int16_t table[kEntries];
  for (int n = 0; n < kEntries; ++n) {
    const int folded = bits(encoded, kTable + n * kEntryBits, kEntryBits), magnitude = folded >> 1;
    table[n] = static_cast<int16_t>((folded & 1) != 0 ? -magnitude : magnitude);
  }
  if ((encoded[0] & kSmall) != 0) {
    look_up<2>(table, items, count, to);
  } else {
    look_up<4>(table, items, count, to);
  }
}
