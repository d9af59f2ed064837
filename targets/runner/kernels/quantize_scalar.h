// int8 of floats and floats of int8, per tensor.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace hil {

struct Quantizer {
  float inverse_scale;
  int32_t zero_point, min, max;

  int32_t operator()(float value) const {
    const float rounded = std::nearbyint(value * inverse_scale) + static_cast<float>(zero_point);
    if (rounded != rounded) return 0;  // what the definition's conversion gives for NaN
    const float low = static_cast<float>(min), high = static_cast<float>(max);
    const float raised = rounded < low ? low : rounded;
    return raised >= high ? max : static_cast<int32_t>(raised);  // 2^31 has no conversion
  }
};

namespace scalar {

inline void quantize(const float* in, int8_t* out, size_t count, const Quantizer& quantizer) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<int8_t>(quantizer(in[i]));
}

inline void dequantize(const int8_t* in, float* out, size_t count, float scale,
                       int32_t zero_point) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i] - zero_point) * scale;
}

}  // namespace scalar

}  // namespace hil
