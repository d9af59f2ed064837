#include "jobs.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "feature_map.h"
#include "results.h"
#include "scratch.h"
#include "vectors.h"
#include "wrapping.h"

namespace hil::npu {
namespace {

template <typename Value>
void gather(Pooling mode, const Value* from, int64_t count, Value* sums) {
  for (int64_t n = 0; n < count; ++n) {
    sums[n] = mode == Pooling::kMax   ? std::max(sums[n], from[n])
              : mode == Pooling::kMin ? std::min(sums[n], from[n])
                                      : wrapped_sum(sums[n], from[n]);
  }
}

bool is_copy(const Job& job) {
  const Window& window = job.window;
  return window.kernel_y == 1 && window.kernel_x == 1 && window.stride_y == 1 &&
         window.stride_x == 1 && window.upscale == 0 && window.top == 0 && window.left == 0 &&
         window.bottom == 0 && window.right == 0 && job.scale.scope != ScaleFor::kPosition &&
         job.pooling != Pooling::kReduceSum;
}

// A kernel of one element: row by row, and no input is kept.
bool copy(const Job& job, const Memory& memory, Results& results) {
  const Output& output = job.output;
  const Scratch<int32_t> line(*memory.pool, output.width * output.depth);
  if (line.data() == nullptr) {
    return false;
  }
  for (int64_t y = 0; y < output.height; ++y) {
    read_row(job.first.map, memory, y, job.first.zero_point, line.data(), output.depth);
    results.put(line.data(), output.depth, y * output.width, output.width, 0, output.depth);
  }
  return true;
}

template <typename Value>
Value fill_of(Pooling mode) {
  // of 64 bits half of the extreme, so that a zero point does not turn it around
  constexpr Value kPart = sizeof(Value) == 8 ? 2 : 1;
  if (mode == Pooling::kMax) {
    return std::numeric_limits<Value>::min() / kPart;
  }
  return mode == Pooling::kMin ? std::numeric_limits<Value>::max() / kPart : 0;
}

template <typename Value>
bool reduce(const Job& job, const Memory& memory, Results& results) {
  const Window& window = job.window;
  const Output& output = job.output;
  const auto mode = job.pooling;
  const int64_t depth = job.first.map.depth;
  Padded<Value> padded{nullptr, padded_columns(window), depth};
  const Scratch<Value> data(*memory.pool, padded_rows(window) * padded.columns * depth);
  const Scratch<Value> sums(*memory.pool, depth + kLanes);
  padded.data = data.data();
  const Value fill = fill_of<Value>(mode);
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
      gather(mode, padded.data + (row * padded.columns + column) * depth, depth, sums.data());
    }
    if (mode == Pooling::kReduceSum) {
      for (int64_t n = 1; n < depth; ++n) {
        sums.data()[0] = wrapped_sum(sums.data()[0], sums.data()[n]);
      }
    }
    results.put(sums.data(), 0, position, 1, 0, output.depth);
  }
  return true;
}

bool done(const Job& job, const Memory& memory, Results& results) {
  if (job.pooling == Pooling::kNone) {
    results.put_zeros();
    return true;
  }
  if (job.wide != 0) {
    return reduce<int64_t>(job, memory, results);
  }
  return is_copy(job) ? copy(job, memory, results) : reduce<int32_t>(job, memory, results);
}

}  // namespace

bool pool(const Job& job, const Memory& memory) {
  Results results(job, memory);
  return results.ready() && done(job, memory, results) && results.finish();
}

}  // namespace hil::npu
