#include "results.h"

#include <algorithm>
#include <cstring>

#include "feature_map.h"
#include "output.h"
#include "vectors.h"
#include "wrapping.h"

namespace hil::npu {
namespace {

int64_t size_of(const Output& output) { return output.height * output.width * output.depth; }

template <typename Value>
bool are_below(int64_t most, const Value* sums, int64_t count) {
  return std::all_of(sums, sums + count, [&](Value sum) { return -most < sum && sum < most; });
}

}  // namespace

Results::Results(const Job& job, const Memory& memory)
    : job_(job),
      memory_(memory),
      has_output_(job.output.map.tiles > 0),
      accumulates_(job.accumulators.initial != Initial::kZero || job.accumulators.keeps != 0),
      size_(size_of(job.output)),
      bytes_(*memory.pool, has_output_ ? size_ * job.output.map.bytes : 1),
      sums_(*memory.pool, accumulates_ ? size_ + kLanes : 1) {}

template <typename Value>
void Results::put(const Value* sums, int64_t pitch, int64_t position, int64_t positions,
                  int64_t channel, int64_t count) {
  const Output& output = job_.output;
  if (accumulates_) {
    for (int64_t p = 0; p < positions; ++p) {
      std::copy_n(sums + p * pitch, count, sums_.data() + (position + p) * output.depth + channel);
    }
    return;
  }
  const int64_t most = job_.accumulators.most;
  for (int64_t p = 0; most != 0 && p < positions; ++p) {
    if (!are_below(most, sums + p * pitch, count)) {
      too_large_ = true;
    }
  }
  if (!has_output_) {
    return;
  }
  const int64_t row = output.depth * output.map.bytes;
  uint8_t* to = bytes_.data() + position * row + channel * output.map.bytes;
  if (job_.scale.scope == ScaleFor::kAll && pitch == count && count == output.depth) {
    finish_values(job_, memory_, Values<Value>{sums, 0, 1, to, 0}, channel, position,
                  positions * count);
    return;
  }
  finish_values(job_, memory_, Values<Value>{sums, pitch, positions, to, row}, channel, position,
                count);
}

template void Results::put(const int32_t*, int64_t, int64_t, int64_t, int64_t, int64_t);
template void Results::put(const int64_t*, int64_t, int64_t, int64_t, int64_t, int64_t);

void Results::put_zeros() { std::fill_n(sums_.data(), accumulates_ ? size_ : 1, int64_t{0}); }

void Results::add_initial() {
  const Operand& source = job_.accumulators.source;
  const Output& output = job_.output;
  const int64_t row = output.width * output.depth;
  if (job_.accumulators.initial == Initial::kKept) {
    for (int64_t n = 0; n < size_; ++n) {
      sums_.data()[n] = wrapped_sum(sums_.data()[n], memory_.kept[n]);
    }
    return;
  }
  const Scratch<int64_t> line(*memory_.pool, row);
  for (int64_t y = 0; line.data() != nullptr && y < output.height; ++y) {
    read_row(source.map, memory_, y, source.zero_point, line.data(), output.depth);
    int64_t* sums = sums_.data() + y * row;
    for (int64_t n = 0; n < row; ++n) {
      sums[n] = wrapped_sum(sums[n], line.data()[n]);
    }
  }
}

bool Results::finish() {
  const Accumulators& accumulators = job_.accumulators;
  if (accumulates_) {
    if (accumulators.initial != Initial::kZero) {
      add_initial();
    }
    too_large_ = !are_below(accumulators.most, sums_.data(), size_);
  }
  if (too_large_) {
    return fail(memory_, Trouble::kAccumulator);
  }
  if (accumulators.keeps != 0) {
    std::copy_n(sums_.data(), size_, memory_.kept);
  }
  if (!has_output_) {
    return true;
  }
  if (accumulates_) {
    const Output& output = job_.output;
    const int64_t row = output.depth * output.map.bytes;
    for (int64_t position = 0; position < output.height * output.width; ++position) {
      const Values<int64_t> values{sums_.data() + position * output.depth, 0, 1,
                                   bytes_.data() + position * row, 0};
      finish_values(job_, memory_, values, 0, position, output.depth);
    }
  }
  write(job_.output, memory_, bytes_.data());
  return true;
}

}  // namespace hil::npu
