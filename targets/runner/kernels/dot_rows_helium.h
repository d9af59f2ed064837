// Rows of bytes times rows of weights, on Helium.
//
// vmladava takes 16 products into one general register, so a 2x2 block of
// results needs two loads of each side per four of them. The loops are
// tail-predicated (wlstp/letp): a row length need not be a multiple of 16.
#pragma once

#include <arm_mve.h>

#include "kernels/byte_rows.h"
#include "kernels/requantize_helium.h"

namespace hil {

/// acc = {w0.x0, w1.x0, w0.x1, w1.x1}, added to what is there.
inline void dot_2x2(const int8_t* w0, const int8_t* w1, const int8_t* x0, const int8_t* x1,
                    size_t length, int32_t& a00, int32_t& a10, int32_t& a01, int32_t& a11) {
  asm volatile(
      "   wlstp.8     lr, %[n], 2f     \n"
      "1: vldrb.8     q0, [%[w0]], #16 \n"
      "   vldrb.8     q1, [%[x0]], #16 \n"
      "   vmladava.s8 %[a00], q0, q1   \n"
      "   vldrb.8     q2, [%[x1]], #16 \n"
      "   vmladava.s8 %[a01], q0, q2   \n"
      "   vldrb.8     q3, [%[w1]], #16 \n"
      "   vmladava.s8 %[a10], q3, q1   \n"
      "   vmladava.s8 %[a11], q3, q2   \n"
      "   letp        lr, 1b           \n"
      "2:                              \n"
      : [a00] "+Te"(a00), [a10] "+Te"(a10), [a01] "+Te"(a01), [a11] "+Te"(a11), [w0] "+r"(w0),
        [w1] "+r"(w1), [x0] "+r"(x0), [x1] "+r"(x1)
      : [n] "r"(length)
      : "q0", "q1", "q2", "q3", "lr", "memory");
}

/// Four weight rows times one row.
inline void dot_4x1(const int8_t* const w[4], const int8_t* x, size_t length, int32_t acc[4]) {
  const int8_t *w0 = w[0], *w1 = w[1], *w2 = w[2], *w3 = w[3];
  asm volatile(
      "   wlstp.8     lr, %[n], 2f     \n"
      "1: vldrb.8     q0, [%[x]], #16  \n"
      "   vldrb.8     q1, [%[w0]], #16 \n"
      "   vmladava.s8 %[a0], q0, q1    \n"
      "   vldrb.8     q2, [%[w1]], #16 \n"
      "   vmladava.s8 %[a1], q0, q2    \n"
      "   vldrb.8     q3, [%[w2]], #16 \n"
      "   vmladava.s8 %[a2], q0, q3    \n"
      "   vldrb.8     q1, [%[w3]], #16 \n"
      "   vmladava.s8 %[a3], q0, q1    \n"
      "   letp        lr, 1b           \n"
      "2:                              \n"
      : [a0] "+Te"(acc[0]), [a1] "+Te"(acc[1]), [a2] "+Te"(acc[2]), [a3] "+Te"(acc[3]),
        [w0] "+r"(w0), [w1] "+r"(w1), [w2] "+r"(w2), [w3] "+r"(w3), [x] "+r"(x)
      : [n] "r"(length)
      : "q0", "q1", "q2", "q3", "lr", "memory");
}

inline int32_t sum_row(const int8_t* x, size_t length) {
  int32_t sum = 0;
  asm volatile(
      "   wlstp.8   lr, %[n], 2f     \n"
      "1: vldrb.8   q0, [%[x]], #16  \n"
      "   vaddva.s8 %[sum], q0       \n"
      "   letp      lr, 1b           \n"
      "2:                            \n"
      : [sum] "+Te"(sum), [x] "+r"(x)
      : [n] "r"(length)
      : "q0", "lr", "memory");
  return sum;
}

inline int32x4_t pack_lanes(int32_t a, int32_t b, int32_t c, int32_t d) {
  int32x4_t q;
  asm("vmov %q0[2], %q0[0], %1, %3\n\tvmov %q0[3], %q0[1], %2, %4"
      : "=&w"(q)
      : "r"(a), "r"(b), "r"(c), "r"(d));
  return q;
}

inline void store_lanes(int8_t* out, int32x4_t values, bool whole, mve_pred16_t lanes) {
  if (whole) {
    vstrbq_s32(out, values);
  } else {
    vstrbq_p_s32(out, values, lanes);
  }
}

/// out[p * out_stride + n] = stage(bias[n] + x[p] . weights[n]).
template <Rounding R>
void dot_rows(const ByteRows& x, const ByteRows& weights, const int32_t* bias,
              const OutputStage& stage, int8_t* out, size_t out_stride) {
  const size_t length = x.length;
  for (size_t n = 0; n < weights.count; n += 4) {
    const size_t left = weights.count - n;
    const bool whole = left >= 4;
    const mve_pred16_t lanes = vctp32q(left);
    const int32x4_t multiplier = load_multipliers(stage, n, lanes);
    const int32x4_t shift = load_shifts(stage, n, lanes);
    const int32x4_t low = vdupq_n_s32(stage.min), high = vdupq_n_s32(stage.max);
    const int32_t out_offset = stage.offset;
    const auto to_bytes = [&](int32x4_t acc) {
      return to_output<R>(acc, multiplier, shift, out_offset, low, high);
    };
    // Rows that do not exist repeat the last one; their results are not stored.
    const int8_t* w[4];
    int32_t b[4];
    for (size_t i = 0; i < 4; ++i) {
      const size_t row = i < left ? n + i : weights.count - 1;
      w[i] = weights.data + row * weights.stride;
      b[i] = bias == nullptr ? 0 : bias[row];
    }
    const int8_t* x0 = x.data;
    int8_t* target = out + n;
    size_t pairs = x.count / 2;
    for (; pairs != 0; --pairs) {
      const int8_t* x1 = x0 + x.stride;
      int32_t a00 = b[0], a10 = b[1], a20 = b[2], a30 = b[3];
      int32_t a01 = b[0], a11 = b[1], a21 = b[2], a31 = b[3];
      dot_2x2(w[0], w[1], x0, x1, length, a00, a10, a01, a11);
      dot_2x2(w[2], w[3], x0, x1, length, a20, a30, a21, a31);
      store_lanes(target, to_bytes(pack_lanes(a00, a10, a20, a30)), whole, lanes);
      store_lanes(target + out_stride, to_bytes(pack_lanes(a01, a11, a21, a31)), whole, lanes);
      target += 2 * out_stride;
      x0 = x1 + x.stride;
    }
    if (x.count % 2 != 0) {
      int32_t acc[4] = {b[0], b[1], b[2], b[3]};
      dot_4x1(w, x0, length, acc);
      store_lanes(target, to_bytes(pack_lanes(acc[0], acc[1], acc[2], acc[3])), whole, lanes);
    }
  }
}

inline void dot_rows(Rounding rounding, const ByteRows& x, const ByteRows& weights,
                     const int32_t* bias, const OutputStage& stage, int8_t* out,
                     size_t out_stride) {
  switch (rounding) {
    case Rounding::Exact:
      return dot_rows<Rounding::Exact>(x, weights, bias, stage, out, out_stride);
    case Rounding::Away:
      return dot_rows<Rounding::Away>(x, weights, bias, stage, out, out_stride);
    case Rounding::Rectified:
      return dot_rows<Rounding::Rectified>(x, weights, bias, stage, out, out_stride);
  }
}

}  // namespace hil
