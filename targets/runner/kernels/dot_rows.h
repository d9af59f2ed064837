// Rows of bytes times rows of weights, with what the core has for it, and the folding of an
// input offset into the bias.
#pragma once

#if defined(__ARM_FEATURE_MVE)
#include "kernels/dot_rows_helium.h"
#else
#include "kernels/dot_rows_words.h"
#endif

namespace hil {

/// Channels whose folded bias is held on the stack at a time.
constexpr size_t kBiasBlock = 64;

/// sum((x + offset) * w) = sum(x * w) + offset * sum(w): the second term joins the bias.
inline void fold_bias(const ByteRows& weights, const int32_t* bias, int32_t input_offset,
                      int32_t* folded) {
  for (size_t n = 0; n < weights.count; ++n) {
    const int8_t* row = weights.data + n * weights.stride;
    const int32_t sum = input_offset == 0 ? 0 : sum_row(row, weights.length);
    folded[n] = wrapping_add(bias == nullptr ? 0 : bias[n], wrapping_multiply(input_offset, sum));
  }
}

}  // namespace hil
