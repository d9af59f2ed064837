#include "output.h"

#include <algorithm>
#include <cstring>

#include "vectors.h"

namespace hil::npu {
namespace {

constexpr int64_t kStep = 256;  // elements between the scale and the table
constexpr int64_t kHalf = 8;    // 64-bit lanes of one step

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
void put(Longs value, int64_t count, Stored* to) {
  typedef Stored Vector __attribute__((vector_size(8 * sizeof(Stored))));
  const Vector narrow = __builtin_convertvector(value, Vector);
  if (count >= kHalf) {
    store(to, narrow);
  } else {
    std::memcpy(to, &narrow, static_cast<size_t>(count) * sizeof(Stored));
  }
}

template <typename Value, typename Stored, ScaleMode kMode>
void scale_all(const Job& job, const Value* values, int64_t channel, int64_t position,
               int64_t count, Stored* to) {
  const Scale scale = job.scale;
  const Ends ends(job.output);
  const int64_t step = scale.scope == ScaleFor::kChannel ? 1 : 0;
  const int64_t bias = step * channel;
  const int64_t start = scale.scope == ScaleFor::kPosition ? position * kLanes : bias;
  for (int64_t n = 0; n < count; n += kHalf) {
    const int64_t at = start + n * step;
    const Longs value = widened(values + n), multiplier = load<Longs>(scale.multiplier + at);
    const Longs shift = load<Longs>(scale.shift + at);
    Longs result;
    if constexpr (kMode == ScaleMode::kNarrow) {
      result = shift_right(multiply_narrow(value, multiplier) + load<Longs>(scale.addend + at), shift);
    } else if constexpr (kMode == ScaleMode::kWide) {
      result = shift_right(value * multiplier + load<Longs>(scale.addend + at), shift);
    } else {
      const Longs biased = value + load<Longs>(scale.bias + bias + n * step);
      result = scaled_exactly(biased, multiplier, load<Longs>(scale.half + at), shift) +
               ends.zero_point;
    }
    put(ends.clamp(result), count - n, to + n);
  }
}

template <typename Value, typename Stored>
void scale_some(const Job& job, const Value* values, int64_t channel, int64_t position,
                int64_t count, void* to) {
  auto* results = static_cast<Stored*>(to);
  switch (job.scale.mode) {
    case ScaleMode::kNarrow:
      return scale_all<Value, Stored, ScaleMode::kNarrow>(job, values, channel, position, count,
                                                          results);
    case ScaleMode::kWide:
      return scale_all<Value, Stored, ScaleMode::kWide>(job, values, channel, position, count,
                                                        results);
    case ScaleMode::kAny:
      return scale_all<Value, Stored, ScaleMode::kAny>(job, values, channel, position, count,
                                                       results);
  }
}

template <typename Value>
void scale_to(int64_t bytes, const Job& job, const Value* values, int64_t channel,
              int64_t position, int64_t count, void* to) {
  if (bytes == 1) {
    scale_some<Value, int8_t>(job, values, channel, position, count, to);
  } else if (bytes == 2) {
    scale_some<Value, int16_t>(job, values, channel, position, count, to);
  } else {
    scale_some<Value, int32_t>(job, values, channel, position, count, to);
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
         (output.table_at >= 0 && output.table_at + output.table_size <= memory.internal_size);
}

template <typename Value>
void finish(const Job& job, const Memory& memory, const Value* values, int64_t channel,
            int64_t position, int64_t count, uint8_t* to) {
  const Output& output = job.output;
  if (output.table == Table::kNone) {
    scale_to(output.index_bytes, job, values, channel, position, count, to);
    return;
  }
  const uint8_t* table = memory.internal + output.table_at;
  int16_t indices[kStep];
  for (int64_t n = 0; n < count; n += kStep) {
    const int64_t some = std::min(kStep, count - n);
    const int64_t from = job.scale.scope == ScaleFor::kChannel ? channel + n : channel;
    scale_to(output.index_bytes, job, values + n, from, position, some, indices);
    if (output.table == Table::kIndex8) {
      look_up_8(table, output.map.bytes, reinterpret_cast<int8_t*>(indices), some,
                to + n * output.map.bytes);
    } else {
      look_up_16(table, output.map.bytes, indices, some, to + n * output.map.bytes);
    }
  }
}

template void finish(const Job&, const Memory&, const int32_t*, int64_t, int64_t, int64_t,
                     uint8_t*);
template void finish(const Job&, const Memory&, const int64_t*, int64_t, int64_t, int64_t,
                     uint8_t*);

}  // namespace hil::npu
