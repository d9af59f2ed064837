#include "pool.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "feature_map.h"
#include "output.h"
#include "scratch.h"
#include "vectors.h"

namespace hil::npu {
namespace {

int64_t bytes_of(const Output& output) {
  return output.height * output.width * output.depth * output.map.bytes;
}

template <typename Value>
void gather(Reduce reduce, const Value* from, int64_t count, Value* sums) {
  for (int64_t n = 0; n < count; ++n) {
    sums[n] = reduce == Reduce::kLargest    ? std::max(sums[n], from[n])
              : reduce == Reduce::kSmallest ? std::min(sums[n], from[n])
                                            : sums[n] + from[n];
  }
}

bool is_copy(const Job& job) {
  const Window& window = job.window;
  return window.kernel_y == 1 && window.kernel_x == 1 && window.stride_y == 1 &&
         window.stride_x == 1 && window.upscale == 0 && window.top == 0 && window.left == 0 &&
         window.bottom == 0 && window.right == 0 && job.scale.scope != ScaleFor::kPosition &&
         static_cast<Reduce>(job.operation) != Reduce::kSumOfChannels;
}

// A kernel of one element: row by row, and no input is kept.
bool copy(const Job& job, const Memory& memory, uint8_t* results) {
  const Output& output = job.output;
  const int64_t row = output.width * output.depth;
  const Scratch<int32_t> line(*memory.pool, row);
  if (line.data() == nullptr) {
    return false;
  }
  for (int64_t y = 0; y < output.height; ++y) {
    read_row(job.first.map, memory, y, job.first.zero_point, line.data(), output.depth);
    if (job.scale.scope == ScaleFor::kAll) {
      uint8_t* to = results + y * row * output.map.bytes;
      finish(job, memory, Values<int32_t>{line.data(), 0, 1, to, 0}, 0, 0, row);
      continue;
    }
    uint8_t* to = results + y * row * output.map.bytes;
    const Values<int32_t> values{line.data(), output.depth, output.width, to,
                                 output.depth * output.map.bytes};
    finish(job, memory, values, 0, 0, output.depth);
  }
  return true;
}

template <typename Value>
Value fill_of(Reduce kind) {
  if (kind == Reduce::kLargest) {
    return std::numeric_limits<Value>::min();
  }
  return kind == Reduce::kSmallest ? std::numeric_limits<Value>::max() : 0;
}

template <typename Value>
bool are_below(int64_t most, const Value* sums, int64_t count) {
  return most == 0 ||
         std::all_of(sums, sums + count, [&](Value sum) { return -most < sum && sum < most; });
}

template <typename Value>
bool reduce(const Job& job, const Memory& memory, uint8_t* results) {
  const Window& window = job.window;
  const Output& output = job.output;
  const auto kind = static_cast<Reduce>(job.operation);
  const int64_t depth = job.first.map.depth;
  Padded<Value> padded{nullptr, padded_columns(window), depth};
  const Scratch<Value> data(*memory.pool, padded_rows(window) * padded.columns * depth);
  const Scratch<Value> sums(*memory.pool, depth + kLanes);
  padded.data = data.data();
  const Value fill = fill_of<Value>(kind);
  if (data.data() == nullptr || sums.data() == nullptr ||
      !read_padded<Value>(job, memory, fill, padded)) {
    return false;
  }
  for (int64_t position = 0; position < output.height * output.width; ++position) {
    const int64_t y = position / output.width, x = position % output.width;
    std::fill_n(sums.data(), depth, fill);
    for (int64_t element = 0; element < window.kernel_y * window.kernel_x; ++element) {
      const int64_t row = y * window.stride_y + element / window.kernel_x * window.dilation_y;
      const int64_t column = x * window.stride_x + element % window.kernel_x * window.dilation_x;
      gather(kind, padded.data + (row * padded.columns + column) * depth, depth, sums.data());
    }
    if (kind == Reduce::kSumOfChannels) {
      sums.data()[0] = std::accumulate(sums.data(), sums.data() + depth, Value{0});
    }
    if (!are_below(job.most, sums.data(), output.depth)) {
      return false;
    }
    uint8_t* to = results + position * output.depth * output.map.bytes;
    finish(job, memory, Values<Value>{sums.data(), 0, 1, to, 0}, 0, position, output.depth);
  }
  return true;
}

bool done(const Job& job, const Memory& memory, uint8_t* results) {
  if (job.wide != 0) {
    return reduce<int64_t>(job, memory, results);
  }
  return is_copy(job) ? copy(job, memory, results) : reduce<int32_t>(job, memory, results);
}

}  // namespace

bool pool(const Job& job, const Memory& memory) {
  const Scratch<uint8_t> results(*memory.pool, bytes_of(job.output));
  if (results.data() == nullptr || !done(job, memory, results.data())) {
    return false;
  }
  write(job.output, memory, results.data());
  return true;
}

}  // namespace hil::npu
