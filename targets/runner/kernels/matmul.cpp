#include "kernels/matmul.h"

#include "kernels/dot_rows.h"

namespace hil {

namespace {

/// A block of weight rows, with the bias that holds the input offset's share.
void multiply_block(const Matmul& m, const ByteRows& weights, const int32_t* bias, int8_t* output) {
  const Rounding rounding = rounding_for(m.stage, 1);
  if (m.filter_offset == 0) {
    const ByteRows x = {m.input, m.inner, m.inner, m.rows};
    return dot_rows(rounding, x, weights, bias, m.stage, output, m.channels);
  }
  // sum((x + i) * (w + f)) = sum((x + i) * w) + f * (sum(x) + length * i)
  int32_t shifted[kBiasBlock];
  for (size_t r = 0; r < m.rows; ++r, output += m.channels) {
    const ByteRows x = {m.input + r * m.inner, m.inner, m.inner, 1};
    const int32_t sum = wrapping_add(
        sum_row(x.data, m.inner), wrapping_multiply(static_cast<int32_t>(m.inner), m.input_offset));
    const int32_t share = wrapping_multiply(m.filter_offset, sum);
    for (size_t n = 0; n < weights.count; ++n) shifted[n] = wrapping_add(bias[n], share);
    dot_rows(rounding, x, weights, shifted, m.stage, output, m.channels);
  }
}

#if !defined(__ARM_FEATURE_MVE)
void multiply_row(const Matmul& m) {
  const bool shifts_right = rounding_for(m.stage, 1) != Rounding::Exact;
  for (size_t n = 0; n < m.channels; ++n) {
    const int32_t sum = dot_offset(m.input, m.input_offset, m.weights + n * m.inner, m.inner);
    const int32_t acc = wrapping_add(m.bias == nullptr ? 0 : m.bias[n], sum);
    m.output[n] = ChannelOutput(m.stage, n, shifts_right)(acc);
  }
}
#endif

}  // namespace

void multiply(const Matmul& m) {
#if !defined(__ARM_FEATURE_MVE)
  // Without Helium a sum of the weights costs as much as the products it saves the offset for.
  if (m.rows == 1 && m.filter_offset == 0) return multiply_row(m);
#endif
  const ByteRows all = {m.weights, m.inner, m.inner, m.channels};
  if (m.input_offset == 0 && m.filter_offset == 0) {
    return multiply_block(m, all, m.bias, m.output);
  }
  int32_t folded[kBiasBlock];
  for (size_t n = 0; n < m.channels; n += kBiasBlock) {
    const size_t left = m.channels - n;
    const ByteRows some = {m.weights + n * m.inner, m.inner, m.inner,
                           left < kBiasBlock ? left : kBiasBlock};
    fold_bias(some, m.bias == nullptr ? nullptr : m.bias + n, m.input_offset, folded);
    multiply_block(m, some, folded, m.output + n);
  }
}

}  // namespace hil
