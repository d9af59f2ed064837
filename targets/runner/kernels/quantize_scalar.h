// int8 of floats and floats of int8, per tensor.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/followed.h"

namespace hil {

/// Whether cortex_m::quantize_per_tensor rounds the products of whole rows once: ExecuTorch's
/// kernel does with Helium, and the runner on the host stands for such a core; a Cortex-A is none.
#if defined(__ARM_FEATURE_MVE) || !(defined(__arm__) || defined(HIL_WITHOUT_HELIUM))
constexpr bool kFusesRows = !kFollowsPython;
#else
constexpr bool kFusesRows = false;
#endif

struct Quantizer {
  float inverse_scale;
  int32_t zero_point, min, max;

  /// The product is rounded to float32 before it is rounded to an integer.
  int32_t operator()(float value) const { return bounded(std::nearbyint(value * inverse_scale)); }

  /// One rounding, half to even, of the exact product: it is added to a number whose last bit is
  /// worth 1. Beyond 2^22 steps the result only has to be large.
  int32_t fused(float value) const {
    return bounded(std::fma(value, inverse_scale, kWhole) - kWhole);
  }

  int32_t at(float value, bool in_row) const {
    return kFusesRows && in_row ? fused(value) : (*this)(value);
  }

  static constexpr float kWhole = 12582912.0f;  // 2^23 + 2^22

 private:
  int32_t bounded(float whole) const {
    const float rounded = whole + static_cast<float>(zero_point);
    if (rounded != rounded) return 0;  // what the definition's conversion gives for NaN
    const float low = static_cast<float>(min), high = static_cast<float>(max);
    const float raised = rounded < low ? low : rounded;
    return raised >= high ? max : static_cast<int32_t>(raised);  // 2^31 has no conversion
  }
};

namespace scalar {

/// The first `whole` of `count` elements are fused.
inline void quantize(const float* in, int8_t* out, size_t whole, size_t count,
                     const Quantizer& quantizer) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = static_cast<int8_t>(quantizer.at(in[i], i < whole));
  }
}

inline void dequantize(const int8_t* in, float* out, size_t count, float scale,
                       int32_t zero_point) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i] - zero_point) * scale;
}

}  // namespace scalar

}  // namespace hil
