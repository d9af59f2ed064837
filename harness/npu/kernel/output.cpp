#include "output.h"

#include <algorithm>
#include <cstring>

#include "feature_map.h"
#include "vectors.h"

namespace hil::npu {
namespace {

constexpr int64_t kStep = 256;  // elements between the scale and the table
constexpr int kHalf = 8;        // 64-bit lanes of one register
constexpr int kHalves = kLanes / kHalf;

template <typename Value>
Longs widened(const Value* values) {
  if constexpr (sizeof(Value) == 4) {
    return __builtin_convertvector(load<HalfInts>(values), Longs);
  } else {
    return load<Longs>(values);
  }
}

// What all elements share, once: the compiler cannot know that no result lies on top of it.
struct Ends {
  Longs zero_point, low, high;
  bool clamped;

  explicit Ends(const Output& output)
      : zero_point(output.zero_point - Longs{}),
        low(output.low - Longs{}),
        high(output.high - Longs{}),
        clamped(output.clamped != 0) {}

  Longs clamp(Longs value) const {
    if (clamped) {
      value = value < low ? low : value;
      value = value > high ? high : value;
    }
    return value;
  }

  HalfInts clamp(HalfInts value) const {
    if (clamped) {
      const HalfInts least = static_cast<int32_t>(low[0]) - HalfInts{};
      const HalfInts most = static_cast<int32_t>(high[0]) - HalfInts{};
      value = value < least ? least : value;
      value = value > most ? most : value;
    }
    return value;
  }
};

// The scales of some channels; ``addend`` or ``bias`` and ``half``, as the mode has it.
struct Factors {
  Longs multiplier[kHalves], shift[kHalves], addend[kHalves], bias[kHalves];

  Factors(const Scale& scale, int64_t channel, int64_t at) {
    const int64_t step = scale.scope == ScaleFor::kChannel ? 1 : 0;
    const bool exact = scale.mode == ScaleMode::kAny;
    const bool spread = scale.scope == ScaleFor::kPosition;
    const auto of = [&](const int64_t* values, int64_t lane) {
      return spread ? values[at] - Longs{} : load<Longs>(values + lane);
    };
    for (int h = 0; h < kHalves; ++h) {
      const int64_t lane = at + h * kHalf * step;
      multiplier[h] = of(scale.multiplier, lane);
      shift[h] = of(scale.shift, lane);
      addend[h] = of(exact ? scale.half : scale.addend, lane);
      bias[h] = exact ? load<Longs>(scale.bias + step * (channel + h * kHalf)) : Longs{};
    }
  }
};

// The low 64 bits of what would need more.
Longs scaled_exactly(Longs value, Longs multiplier, Longs half, Longs shift) {
  Longs result{};
  for (int n = 0; n < kHalf; ++n) {
    __extension__ typedef __int128 Exact;
    const Exact exact = static_cast<Exact>(value[n]) * multiplier[n] + half[n];
    result[n] = static_cast<int64_t>(exact >> shift[n]);
  }
  return result;
}

template <typename Stored>
void put(const void* results, int64_t count, Stored* to) {
  if (count >= kLanes) {
    std::memcpy(to, results, kLanes * sizeof(Stored));
  } else {
    std::memcpy(to, results, static_cast<size_t>(count) * sizeof(Stored));
  }
}

template <typename Stored, ScaleMode kMode, typename Value>
void scale_lanes(const Factors& factors, const Ends& ends, const Value* values, int64_t count,
                 Stored* to) {
  typedef Stored Half __attribute__((vector_size(kHalf * sizeof(Stored))));
  typedef Stored Full __attribute__((vector_size(kLanes * sizeof(Stored))));
  if constexpr (kMode == ScaleMode::kNarrow) {
    HalfInts part[kHalves];
    for (int h = 0; h < kHalves; ++h) {
      const Longs product = multiply_narrow(widened(values + h * kHalf), factors.multiplier[h]);
      part[h] = ends.clamp(__builtin_convertvector(
          shift_right(add(product, factors.addend[h]), factors.shift[h]), HalfInts));
    }
    const Full result = narrowed<Full>(part[0], part[1]);
    put(&result, count, to);
    return;
  }
  Half part[kHalves];
  for (int h = 0; h < kHalves; ++h) {
    const Longs value = widened(values + h * kHalf);
    Longs result;
    if constexpr (kMode == ScaleMode::kWide) {
      result = shift_right(add(multiply(value, factors.multiplier[h]), factors.addend[h]),
                           factors.shift[h]);
    } else {
      const Longs biased = add(value, factors.bias[h]);
      result =
          add(scaled_exactly(biased, factors.multiplier[h], factors.addend[h], factors.shift[h]),
              ends.zero_point);
    }
    part[h] = __builtin_convertvector(ends.clamp(result), Half);
  }
  put(part, count, to);
}

template <typename Stored, ScaleMode kMode, typename Value>
void scale_all(const Job& job, const Values<Value>& values, int64_t channel, int64_t position,
               int64_t count) {
  const Ends ends(job.output);
  const Scale scale = job.scale;
  const bool by_channel = scale.scope == ScaleFor::kChannel;
  Factors factors(scale, channel,
                  by_channel ? channel : (scale.scope == ScaleFor::kPosition ? position : 0));
  for (int64_t n = 0; n < count; n += kLanes) {
    if (by_channel && n > 0) {
      factors = Factors(scale, channel + n, channel + n);
    }
    for (int64_t p = 0; p < values.positions; ++p) {
      auto* to = reinterpret_cast<Stored*>(values.to + p * values.to_pitch) + n;
      scale_lanes<Stored, kMode>(factors, ends, values.data + p * values.pitch + n, count - n, to);
    }
  }
}

template <typename Stored, typename Value>
void scale_some(const Job& job, const Values<Value>& values, int64_t channel, int64_t position,
                int64_t count) {
  switch (job.scale.mode) {
    case ScaleMode::kNarrow:
      return scale_all<Stored, ScaleMode::kNarrow>(job, values, channel, position, count);
    case ScaleMode::kWide:
      return scale_all<Stored, ScaleMode::kWide>(job, values, channel, position, count);
    case ScaleMode::kAny:
      return scale_all<Stored, ScaleMode::kAny>(job, values, channel, position, count);
  }
}

template <typename Value>
void scale_to(int64_t bytes, const Job& job, const Values<Value>& values, int64_t channel,
              int64_t position, int64_t count) {
  if (bytes == 1) {
    scale_some<int8_t>(job, values, channel, position, count);
  } else if (bytes == 2) {
    scale_some<int16_t>(job, values, channel, position, count);
  } else if (bytes == 4) {
    scale_some<int32_t>(job, values, channel, position, count);
  } else {
    scale_some<int64_t>(job, values, channel, position, count);
  }
}

// 256 entries as wide as the result; the first belongs to -128.
void look_up_8(const uint8_t* table, int64_t bytes, const int8_t* indices, int64_t count,
               uint8_t* to) {
  for (int64_t n = 0; n < count; ++n) {
    std::memcpy(to + n * bytes, table + (indices[n] + 128) * bytes, static_cast<size_t>(bytes));
  }
}

// 512 entries of base (low 16 bits) and slope (high 16): the lower 7 bits of an index interpolate.
void look_up_16(const uint8_t* table, int64_t bytes, const int16_t* indices, int64_t count,
                uint8_t* to) {
  for (int64_t n = 0; n < count; ++n) {
    const uint8_t* entry = table + 4 * ((indices[n] >> 7) + 256);
    const int32_t base = load<int16_t>(entry), slope = load<int16_t>(entry + 2);
    const int32_t value = base * 128 + slope * (indices[n] & 127);
    if (bytes == 2) {
      store(to + 2 * n, static_cast<int16_t>((value + 64) >> 7));
    } else {
      store(to + 4 * n, value);
    }
  }
}

}  // namespace

bool has_table(const Output& output, const Memory& memory) {
  return output.table == Table::kNone ||
         (output.table_at >= 0 && output.table_at + output.table_size <= memory.internal_size) ||
         fail(memory, Trouble::kBounds, Part::kTable);
}

template <typename Value>
void finish_values(const Job& job, const Memory& memory, const Values<Value>& values,
                   int64_t channel, int64_t position, int64_t count) {
  const Output& output = job.output;
  const int64_t bytes = output.map.bytes;
  if (output.table == Table::kNone) {
    scale_to(output.index_bytes, job, values, channel, position, count);
    return;
  }
  const uint8_t* table = memory.internal + output.table_at;
  alignas(4) uint8_t indices[2 * kStep];
  for (int64_t p = 0; p < values.positions; ++p) {
    for (int64_t n = 0; n < count; n += kStep) {
      const int64_t some = std::min(kStep, count - n);
      const Value* from = values.data + p * values.pitch + n;
      scale_to(output.index_bytes, job, Values<Value>{from, 0, 1, indices, 0}, channel + n,
               position, some);
      uint8_t* to = values.to + p * values.to_pitch + n * bytes;
      if (output.table == Table::kIndex8) {
        look_up_8(table, bytes, reinterpret_cast<const int8_t*>(indices), some, to);
      } else {
        look_up_16(table, bytes, reinterpret_cast<const int16_t*>(indices), some, to);
      }
    }
  }
}

template void finish_values(const Job&, const Memory&, const Values<int32_t>&, int64_t, int64_t,
                            int64_t);
template void finish_values(const Job&, const Memory&, const Values<int64_t>&, int64_t, int64_t,
                            int64_t);

}  // namespace hil::npu
