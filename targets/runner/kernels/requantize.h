// Fixed-point rescaling, as requantize_cmsis in
// executorch/backends/cortex_m/passes/passes_utils.py defines it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hil {

/// Shifts outside this range have no meaning in the definition's 64-bit arithmetic.
constexpr int32_t kMinShift = -62;
constexpr int32_t kMaxShift = 31;

/// The definition itself: 64-bit with wrap-around, round half up after the
/// multiplication and half away from zero after the right shift.
inline int32_t requantize(int32_t value, int32_t multiplier, int32_t shift) {
  const uint32_t left = shift > 0 ? static_cast<uint32_t>(shift) : 0;
  const uint32_t right = shift < 0 ? static_cast<uint32_t>(-shift) : 0;
  const uint64_t shifted = static_cast<uint64_t>(static_cast<int64_t>(value)) << left;
  const uint64_t product = shifted * static_cast<uint64_t>(static_cast<int64_t>(multiplier));
  int64_t result = static_cast<int64_t>(product + (uint64_t{1} << 30)) >> 31;
  if (right != 0) {
    const int64_t mask = (int64_t{1} << right) - 1;
    const int64_t remainder = result & mask;
    result >>= right;
    const int64_t threshold = (mask >> 1) + (result < 0 ? 1 : 0);
    result += remainder > threshold ? 1 : 0;
  }
  return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(result)));
}

/// 32-bit addition as the definition's int32 tensors do it: modulo 2^32.
inline int32_t wrapping_add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

inline int32_t wrapping_multiply(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}

inline int32_t clamp(int32_t value, int32_t low, int32_t high) {
  // In torch.clamp the upper bound wins when the bounds cross.
  const int32_t raised = value < low ? low : value;
  return raised > high ? high : raised;
}

/// How accumulators become int8. `step` is 1 for per-channel scales and 0 when
/// one scale serves all (then the arrays hold it four times, for vector loads).
struct OutputStage {
  const int32_t* multipliers;
  const int32_t* shifts;
  size_t step;
  int32_t offset;
  int32_t min;
  int32_t max;
};

/// requantize() for shifts of -31 to 0 and multipliers that are not negative: all in 32 bits
/// but the product. None of the sums overflows, as the product's high half is below 2^31 - 1.
inline int32_t requantize_right(int32_t value, int32_t multiplier, int32_t shift) {
  const int64_t product = static_cast<int64_t>(value) * multiplier + (int64_t{1} << 30);
  const int32_t high = static_cast<int32_t>(product >> 31);
  if (shift == 0) return high;
  const int32_t away = high + (high >> 31);  // half up after this is half away from zero
  return ((away >> (-shift - 1)) + 1) >> 1;
}

/// The output stage of one channel, its numbers at hand.
class ChannelOutput {
 public:
  /// `shifts_right`: the scale suits requantize_right().
  ChannelOutput(const OutputStage& stage, size_t channel, bool shifts_right)
      : multiplier_(stage.multipliers[channel * stage.step]),
        shift_(stage.shifts[channel * stage.step]),
        offset_(stage.offset),
        min_(stage.min),
        max_(stage.max),
        shifts_right_(shifts_right) {}

  int8_t operator()(int32_t accumulator) const {
    const int32_t scaled = shifts_right_ ? requantize_right(accumulator, multiplier_, shift_)
                                         : requantize(accumulator, multiplier_, shift_);
    return static_cast<int8_t>(clamp(wrapping_add(scaled, offset_), min_, max_));
  }

 private:
  int32_t multiplier_, shift_, offset_, min_, max_;
  bool shifts_right_;
};

inline int8_t to_output(int32_t accumulator, const OutputStage& stage, size_t channel) {
  return ChannelOutput(stage, channel, false)(accumulator);
}

/// Which vector sequence gives the definition's bytes.
enum class Rounding {
  Exact,      // none: one lane at a time (left shifts may overflow 32 bits)
  Away,       // right shifts only
  Rectified,  // right shifts only, and negative results are clamped to the offset,
              // so how they are rounded cannot be seen
};

/// Right shifts that 32-bit arithmetic can do.
constexpr bool vector_scale(int32_t multiplier, int32_t shift) {
  return multiplier >= 0 && shift <= 0 && shift >= -31;
}

inline Rounding rounding_for(const OutputStage& stage, size_t channels) {
  for (size_t i = 0; i < (stage.step == 0 ? 1 : channels); ++i) {
    if (!vector_scale(stage.multipliers[i], stage.shifts[i])) return Rounding::Exact;
  }
  return stage.min >= stage.offset ? Rounding::Rectified : Rounding::Away;
}

}  // namespace hil
