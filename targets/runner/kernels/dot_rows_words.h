// Rows of bytes times rows of weights, four bytes at a time: two pairs of 16-bit products with
// the DSP instructions, byte by byte without.
#pragma once

#include "kernels/byte_rows.h"
#include "kernels/dot.h"

namespace hil {

/// acc = {w0.x0, w1.x0, w0.x1, w1.x1}, added to what is there.
inline void dot_2x2(const int8_t* w0, const int8_t* w1, const int8_t* x0, const int8_t* x1,
                    size_t length, int32_t& a00, int32_t& a10, int32_t& a01, int32_t& a11) {
  int32_t s00 = a00, s10 = a10, s01 = a01, s11 = a11;
#if defined(__ARM_FEATURE_DSP)
  // Weights are loaded twice: there is no register to keep them in.
  if (length >= 4) {
    const int8_t* end = x0 + length / 4 * 4;
    int32_t e0, o0, e1, o1, w;
    asm volatile(
        "1: ldr    %[e0], [%[x0]], #4      \n"
        "   ldr    %[e1], [%[x1]], #4      \n"
        "   sxtb16 %[o0], %[e0], ror #8    \n"
        "   sxtb16 %[e0], %[e0]            \n"
        "   sxtb16 %[o1], %[e1], ror #8    \n"
        "   sxtb16 %[e1], %[e1]            \n"
        "   ldr    %[w], [%[w0]]           \n"
        "   sxtb16 %[w], %[w]              \n"
        "   smlad  %[a], %[e0], %[w], %[a] \n"
        "   smlad  %[c], %[e1], %[w], %[c] \n"
        "   ldr    %[w], [%[w0]], #4       \n"
        "   sxtb16 %[w], %[w], ror #8      \n"
        "   smlad  %[a], %[o0], %[w], %[a] \n"
        "   smlad  %[c], %[o1], %[w], %[c] \n"
        "   ldr    %[w], [%[w1]]           \n"
        "   sxtb16 %[w], %[w]              \n"
        "   smlad  %[b], %[e0], %[w], %[b] \n"
        "   smlad  %[d], %[e1], %[w], %[d] \n"
        "   ldr    %[w], [%[w1]], #4       \n"
        "   sxtb16 %[w], %[w], ror #8      \n"
        "   smlad  %[b], %[o0], %[w], %[b] \n"
        "   smlad  %[d], %[o1], %[w], %[d] \n"
        "   ldr    %[w], %[end]            \n"
        "   cmp    %[x0], %[w]             \n"
        "   bne    1b                      \n"
        : [a] "+r"(s00), [b] "+r"(s10), [c] "+r"(s01), [d] "+r"(s11), [w0] "+r"(w0), [w1] "+r"(w1),
          [x0] "+r"(x0), [x1] "+r"(x1), [e0] "=&r"(e0), [o0] "=&r"(o0), [e1] "=&r"(e1),
          [o1] "=&r"(o1), [w] "=&r"(w)
        : [end] "m"(end)
        : "cc", "memory");
    length %= 4;
  }
#endif
  for (; length != 0; --length) {
    const int32_t v0 = *w0++, v1 = *w1++, p0 = *x0++, p1 = *x1++;
    s00 = wrapping_add(s00, v0 * p0);
    s10 = wrapping_add(s10, v1 * p0);
    s01 = wrapping_add(s01, v0 * p1);
    s11 = wrapping_add(s11, v1 * p1);
  }
  a00 = s00, a10 = s10, a01 = s01, a11 = s11;
}

inline int32_t sum_row(const int8_t* x, size_t length) {
  int32_t sum = 0;
  for (size_t i = 0; i < length; ++i) sum += x[i];
  return sum;
}

/// out[p * out_stride + n] = stage(bias[n] + x[p] . weights[n]). A weight row without a partner
/// is its own; that result is not stored.
inline void dot_rows(Rounding rounding, const ByteRows& x, const ByteRows& weights,
                     const int32_t* bias, const OutputStage& stage, int8_t* out,
                     size_t out_stride) {
  const bool shifts_right = rounding != Rounding::Exact;
  for (size_t n = 0; n < weights.count; n += 2) {
    const bool two = n + 1 < weights.count;
    const size_t next = two ? n + 1 : n;
    const int8_t* w0 = weights.data + n * weights.stride;
    const int8_t* w1 = weights.data + next * weights.stride;
    const int32_t b0 = bias == nullptr ? 0 : bias[n], b1 = bias == nullptr ? 0 : bias[next];
    const ChannelOutput first(stage, n, shifts_right), second(stage, next, shifts_right);
    int8_t* target = out + n;
    const int8_t* x0 = x.data;
    for (size_t pairs = x.count / 2; pairs != 0; --pairs, x0 += 2 * x.stride) {
      int32_t a00 = b0, a10 = b1, a01 = b0, a11 = b1;
      dot_2x2(w0, w1, x0, x0 + x.stride, x.length, a00, a10, a01, a11);
      target[0] = first(a00);
      if (two) target[1] = second(a10);
      target += out_stride;
      target[0] = first(a01);
      if (two) target[1] = second(a11);
      target += out_stride;
    }
    if (x.count % 2 == 0) continue;
    target[0] = first(wrapping_add(b0, dot_offset(x0, 0, w0, x.length)));
    if (two) target[1] = second(wrapping_add(b1, dot_offset(x0, 0, w1, x.length)));
  }
}

}  // namespace hil
