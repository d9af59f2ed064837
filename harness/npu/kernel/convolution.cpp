// A convolution without a matrix of its columns: one row of the kernel is one run of the padded
// input, and each step multiplies a pair of its numbers with pairs of weights of many channels.
#include "convolution.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "feature_map.h"
#include "results.h"
#include "scratch.h"
#include "vectors.h"

namespace hil::npu {
namespace {

constexpr int kPanel = kVector == 16 ? 4 : 2;  // vectors of output channels at a time
constexpr int kWidth = kPanel * kVector;
constexpr int kPixels = 6;  // positions at a time
constexpr int kSums = kPixels * kWidth + kLanes;
constexpr int64_t kPiece = 256;  // products of 8-bit parts and any weights whose sum fits 32 bits
constexpr int64_t kBlock = 1 << 15;  // input elements that stay in the cache, about

int64_t rounded(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// A run of the padded input under a part of the kernel.
struct Runs {
  int64_t count, length;   // length of each, in elements, even
  int64_t step_y, step_x;  // from one run to the next
  int64_t per_row;         // runs per row of the kernel

  int64_t at(int64_t n) const { return n / per_row * step_y + n % per_row * step_x; }
};

template <int kVectors>
void multiply(const int16_t* const* positions, const Runs& runs, const int16_t* weights,
              int32_t* sums) {
  Ints sum[kPixels][kVectors] = {};
  for (int64_t run = 0; run < runs.count; ++run) {
    const int64_t at = runs.at(run);
    for (int64_t n = at; n < at + runs.length; n += 2) {
      Ints weight[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        weight[v] = load<Ints>(weights + v * kVector * 2);
      }
      weights += kVectors * kVector * 2;
      for (int p = 0; p < kPixels; ++p) {
        const Ints pair = broadcast(load<int32_t>(positions[p] + n));
        for (int v = 0; v < kVectors; ++v) {
          sum[p][v] = multiply_pairs(sum[p][v], weight[v], pair);
        }
      }
    }
  }
  for (int p = 0; p < kPixels; ++p) {
    for (int v = 0; v < kVectors; ++v) {
      store(sums + (p * kVectors + v) * kVector, sum[p][v]);
    }
  }
}

// Of kVectors or fewer.
template <int kVectors = kPanel>
void multiply_some(int64_t vectors, const int16_t* const* positions, const Runs& runs,
                   const int16_t* weights, int32_t* sums) {
  if constexpr (kVectors > 1) {
    if (vectors < kVectors) {
      multiply_some<kVectors - 1>(vectors, positions, runs, weights, sums);
      return;
    }
  }
  multiply<kVectors>(positions, runs, weights, sums);
}

// The padded input as 16-bit numbers; of a wide job their high parts follow their low ones.
struct Input {
  Padded<int16_t> padded;
  int64_t size;
  bool wide;

  const int16_t* position(const Window& window, int64_t y, int64_t x) const {
    return padded.data +
           (y * window.stride_y * padded.columns + x * window.stride_x) * padded.pitch;
  }
};

int64_t input_size(const Job& job, int64_t pitch) {
  return padded_rows(job.window) * padded_columns(job.window) * pitch;
}

bool read_input(const Job& job, const Memory& memory, int64_t pitch, int16_t* data, Input& input) {
  input.padded = {data, padded_columns(job.window), pitch};
  input.size = input_size(job, pitch);
  input.wide = job.wide != 0;
  if (!read_padded<int16_t>(job, memory, 0, input.padded)) {
    return false;
  }
  for (int64_t n = 0; input.wide && n < input.size; ++n) {
    const int value = data[n];
    data[n] = static_cast<int16_t>(value & 255);
    data[n + input.size] = static_cast<int16_t>(value >> 8);
  }
  return true;
}

// Adds the two halves of wide sums.
void join(const int32_t* low, const int32_t* high, int64_t count, int64_t* sums) {
  for (int64_t n = 0; n < count; ++n) {
    sums[n] += low[n] + INT64_C(256) * high[n];
  }
}

struct Convolution {
  const Job& job;
  const Input& input;
  Runs runs;
  Results& results;

  // 64-bit sums. ``places`` are those of the low parts.
  void multiply_wide(int64_t vectors, const int16_t* const* places, const int16_t* weights,
                     int64_t* sums) const {
    const int64_t count = kPixels * vectors * kVector;
    std::fill_n(sums, count, int64_t{0});
    if (job.wide == 1) {
      multiply_piece(vectors, places, 0, runs, weights, sums);
      return;
    }
    for (int64_t run = 0; run < runs.count; ++run) {
      for (int64_t n = 0; n < runs.length; n += kPiece) {
        const int64_t length = std::min(kPiece, runs.length - n);
        multiply_piece(vectors, places, runs.at(run) + n, Runs{1, length, 0, 0, 1}, weights, sums);
        weights += length * vectors * kVector;
      }
    }
  }

  // Adds what two 32-bit sums hold.
  void multiply_piece(int64_t vectors, const int16_t* const* places, int64_t offset,
                      const Runs& piece, const int16_t* weights, int64_t* sums) const {
    alignas(64) int32_t part[2][kSums];
    for (int64_t half = 0; half < 2; ++half) {
      const int16_t* moved[kPixels];
      for (int64_t p = 0; p < kPixels; ++p) {
        moved[p] = places[p] + offset + half * input.size;
      }
      multiply_some(vectors, moved, piece, weights, part[half]);
    }
    join(part[0], part[1], kPixels * vectors * kVector, sums);
  }

  // Some positions, all channels.
  void block(int64_t first, int64_t last) const {
    const Output& output = job.output;
    const int64_t all = runs.count * runs.length;
    alignas(64) int32_t sums[kSums];
    int64_t wide_sums[kSums];
    for (int64_t channel = 0; channel < output.depth; channel += kWidth) {
      const int64_t count = std::min<int64_t>(kWidth, output.depth - channel);
      const int64_t vectors = rounded(count, kVector) / kVector, pitch = vectors * kVector;
      const int16_t* weights = job.weights + channel * all;
      for (int64_t position = first; position < last; position += kPixels) {
        const int64_t positions = std::min<int64_t>(kPixels, last - position);
        const int16_t* places[kPixels];
        for (int64_t p = 0; p < kPixels; ++p) {
          const int64_t at = std::min(position + p, last - 1);
          places[p] = input.position(job.window, at / output.width, at % output.width);
        }
        if (input.wide) {
          multiply_wide(vectors, places, weights, wide_sums);
          results.put(wide_sums, pitch, position, positions, channel, count);
        } else {
          multiply_some(vectors, places, runs, weights, sums);
          results.put(sums, pitch, position, positions, channel, count);
        }
      }
    }
  }
};

struct Depthwise {
  const Job& job;
  const Input& input;
  Results& results;

  static constexpr int64_t kVectors = kPanel;

  template <int64_t kCount>
  void sum(const int16_t* place, int64_t channel, int32_t* sums) const {
    const Window& window = job.window;
    Ints sum[kCount] = {};
    const int16_t* weights = job.weights + 2 * channel;
    for (int64_t y = 0; y < window.kernel_y; ++y) {
      const int16_t* row =
          place + y * window.dilation_y * input.padded.columns * input.padded.pitch + channel;
      for (int64_t x = 0; x < window.kernel_x; ++x) {
        for (int64_t v = 0; v < kCount; ++v) {
          const Ints values = __builtin_convertvector(load<Shorts>(row + v * kVector), Ints);
          sum[v] = multiply_pairs(sum[v], values, load<Ints>(weights + 2 * v * kVector));
        }
        row += window.dilation_x * input.padded.pitch;
        weights += 2 * input.padded.pitch;
      }
    }
    for (int64_t v = 0; v < kCount; ++v) {
      store(sums + v * kVector, sum[v]);
    }
  }

  template <int64_t kCount = kVectors>
  void some(const int16_t* place, int64_t channel, int64_t vectors, int32_t* sums) const {
    if constexpr (kCount > 1) {
      if (vectors < kCount) {
        some<kCount - 1>(place, channel, vectors, sums);
        return;
      }
    }
    sum<kCount>(place, channel, sums);
  }

  void compute() const {
    const Output& output = job.output;
    const int64_t all = output.height * output.width;
    alignas(64) int32_t sums[2][kSums];
    for (int64_t channel = 0; channel < output.depth; channel += kWidth) {
      const int64_t count = std::min<int64_t>(kWidth, output.depth - channel);
      const int64_t vectors = rounded(count, kVector) / kVector, pitch = vectors * kVector;
      for (int64_t position = 0; position < all; position += kPixels) {
        const int64_t positions = std::min<int64_t>(kPixels, all - position);
        for (int64_t p = 0; p < positions; ++p) {
          const int64_t at = position + p;
          const int16_t* place = input.position(job.window, at / output.width, at % output.width);
          some(place, channel, vectors, sums[0] + p * pitch);
          if (input.wide) {
            some(place + input.size, channel, vectors, sums[1] + p * pitch);
          }
        }
        if (input.wide) {
          int64_t wide_sums[kSums] = {};
          join(sums[0], sums[1], positions * pitch, wide_sums);
          results.put(wide_sums, pitch, position, positions, channel, count);
        } else {
          results.put(sums[0], pitch, position, positions, channel, count);
        }
      }
    }
  }
};

// Of absolute weights, over the output channels.
int64_t largest_sum(const int16_t* weights, int64_t pitch, int64_t ofm, int64_t elements,
                    int64_t depth) {
  int64_t largest = 0;
  for (int64_t channel = 0; channel < ofm; ++channel) {
    int64_t sum = 0;
    for (int64_t element = 0; element < elements; ++element) {
      const int16_t* row = weights + (channel * elements + element) * pitch;
      for (int64_t n = 0; n < depth; ++n) {
        sum += std::abs(static_cast<int32_t>(row[n]));
      }
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace

bool convolve(const Job& job, const Memory& memory) {
  const Window& window = job.window;
  const Output& output = job.output;
  const int64_t pitch = rounded(job.first.map.depth, 2);
  const Scratch<int16_t> data(*memory.pool, input_size(job, pitch) * (job.wide != 0 ? 2 : 1));
  Results results(job, memory);
  Input input{};
  if (data.data() == nullptr || !results.ready() ||
      !read_input(job, memory, pitch, data.data(), input)) {
    return false;
  }
  const int64_t row = window.dilation_y * input.padded.columns * pitch;
  const bool dense = window.dilation_x == 1;
  const Runs runs = dense ? Runs{window.kernel_y, window.kernel_x * pitch, row, 0, 1}
                          : Runs{window.kernel_y * window.kernel_x, pitch, row,
                                 window.dilation_x * pitch, window.kernel_x};
  const Convolution convolution{job, input, runs, results};
  const int64_t positions = output.height * output.width;
  const int64_t step =
      rounded(std::max<int64_t>(kBlock / (runs.count * runs.length), 2 * kPixels), kPixels);
  for (int64_t first = 0; first < positions; first += step) {
    convolution.block(first, std::min(positions, first + step));
  }
  return results.finish();
}

bool convolve_depthwise(const Job& job, const Memory& memory) {
  const int64_t pitch = rounded(job.first.map.depth, kVector);
  const Scratch<int16_t> data(*memory.pool, input_size(job, pitch) * (job.wide != 0 ? 2 : 1));
  Results results(job, memory);
  Input input{};
  if (data.data() == nullptr || !results.ready() ||
      !read_input(job, memory, pitch, data.data(), input)) {
    return false;
  }
  const Depthwise depthwise{job, input, results};
  depthwise.compute();
  return results.finish();
}

}  // namespace hil::npu

using hil::npu::kVector;
using hil::npu::kWidth;

int64_t hil_npu_packed(int64_t depthwise, int64_t ofm, int64_t elements, int64_t ifm) {
  const int64_t channels = hil::npu::rounded(ofm, kVector);
  return elements * channels * (depthwise != 0 ? 2 : hil::npu::rounded(ifm, 2));
}

int64_t hil_npu_pack(int64_t depthwise, const int16_t* weights, int64_t pitch, int64_t ofm,
                     int64_t elements, int64_t ifm, int16_t* packed) {
  const int64_t depth = depthwise != 0 ? 1 : ifm;
  std::memset(packed, 0,
              static_cast<size_t>(hil_npu_packed(depthwise, ofm, elements, ifm)) * sizeof *packed);
  if (depthwise != 0) {
    const int64_t channels = hil::npu::rounded(ofm, kVector);
    for (int64_t channel = 0; channel < ofm; ++channel) {
      for (int64_t element = 0; element < elements; ++element) {
        packed[2 * (element * channels + channel)] =
            weights[(channel * elements + element) * pitch];
      }
    }
    return hil::npu::largest_sum(weights, pitch, ofm, elements, 1);
  }
  const int64_t pairs = hil::npu::rounded(depth, 2) / 2;
  for (int64_t panel = 0; panel < ofm; panel += kWidth) {
    const int64_t count = std::min<int64_t>(kWidth, ofm - panel);
    const int64_t width = hil::npu::rounded(count, kVector);
    for (int64_t element = 0; element < elements; ++element) {
      const int16_t* from = weights + (panel * elements + element) * pitch;
      int16_t* to = packed + (panel * elements + element * width) * pairs * 2;
      for (int64_t pair = 0; pair < pairs; ++pair, to += width * 2) {
        const auto size = static_cast<size_t>(std::min<int64_t>(2, depth - 2 * pair));
        for (int64_t n = 0; n < count; ++n) {
          const int16_t* two = from + n * elements * pitch + 2 * pair;
          if (size == 2) {
            std::memcpy(to + 2 * n, two, 2 * sizeof *to);
          } else {
            to[2 * n] = *two;
          }
        }
      }
    }
  }
  return hil::npu::largest_sum(weights, pitch, ofm, elements, depth);
}
