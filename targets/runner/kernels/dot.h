// sum((x + offset) * w) over a run of bytes, with what the core has for it.
#pragma once

#include <cstring>

#include "kernels/requantize.h"

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#elif defined(__ARM_FEATURE_DSP)
#include <arm_acle.h>
#endif

namespace hil {

#if defined(__ARM_FEATURE_MVE)

inline int32_t dot_offset(const int8_t* x, int32_t offset, const int8_t* w, size_t length) {
  int32_t products = 0, weights = 0;
  for (size_t i = 0; i < length; i += 16) {
    const mve_pred16_t lanes = vctp8q(length - i);
    const int8x16_t bytes = vldrbq_z_s8(w + i, lanes);
    products = vmladavaq_s8(products, vldrbq_z_s8(x + i, lanes), bytes);
    weights = vaddvaq_s8(weights, bytes);
  }
  return wrapping_add(products, wrapping_multiply(offset, weights));
}

#else

#if defined(__ARM_FEATURE_DSP)

/// Four bytes as two pairs of 16-bit numbers: bytes 0 and 2, bytes 1 and 3.
struct BytePairs {
  int16x2_t even, odd;

  explicit BytePairs(const int8_t* bytes) {
    const uint32_t word = load(bytes);
    even = __sxtb16(word);
    asm("sxtb16 %0, %1, ror #8" : "=r"(odd) : "r"(word));  // gcc 12 rotates on its own
  }
  /// With `both` added to each number.
  BytePairs(const int8_t* bytes, int16x2_t both) {
    const uint32_t word = load(bytes);
    even = __sxtab16(both, word);
    asm("sxtab16 %0, %1, %2, ror #8" : "=r"(odd) : "r"(both), "r"(word));
  }

 private:
  static uint32_t load(const int8_t* bytes) {
    uint32_t word;
    std::memcpy(&word, bytes, sizeof(word));
    return word;
  }
};

/// A number in both halves of a word.
inline int16x2_t twice(int32_t value) {
  const uint32_t low = static_cast<uint32_t>(value) & 0xFFFF;
  return static_cast<int16x2_t>(low << 16 | low);
}

/// Adding a byte to the offset stays within 16 bits.
inline bool fits_pairs(int32_t offset) {
  return offset >= INT16_MIN + 128 && offset <= INT16_MAX - 127;
}

#endif

inline int32_t dot_offset(const int8_t* x, int32_t offset, const int8_t* w, size_t length) {
  int32_t sum = 0;
#if defined(__ARM_FEATURE_DSP)
  const int16x2_t both = twice(offset);
  for (size_t words = fits_pairs(offset) ? length / 4 : 0; words != 0; --words) {
    const BytePairs xs(x, both), ws(w);
    sum = __smlad(xs.even, ws.even, sum);
    sum = __smlad(xs.odd, ws.odd, sum);
    x += 4, w += 4, length -= 4;
  }
#endif
  for (; length != 0; --length) {
    sum = wrapping_add(sum, wrapping_multiply(*x++ + offset, *w++));
  }
  return sum;
}

#endif

}  // namespace hil
