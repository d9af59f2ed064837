#include "jobs.h"

#include "convolution.h"
#include "feature_map.h"
#include "scratch.h"

namespace hil::npu {
namespace {

constexpr int64_t kMostOfParts = 1 << 23;  // what sums of 8-bit parts may be multiplied by

}  // namespace

bool matrix_product(const Job& job, const Memory& memory) {
  const Map& other = job.second.map;
  const int64_t depth = other.depth, channels = job.output.depth;
  const Scratch<int16_t> plain(*memory.pool, channels * depth);
  const Scratch<int16_t> packed(*memory.pool, hil_npu_packed(0, channels, 1, depth));
  if (plain.data() == nullptr || packed.data() == nullptr ||
      channels != other.height * other.width || depth != job.first.map.depth) {
    return false;
  }
  for (int64_t y = 0; y < other.height; ++y) {
    read_row(other, memory, y, job.second.zero_point, plain.data() + y * other.width * depth,
             depth);
  }
  const int64_t largest = hil_npu_pack(0, plain.data(), depth, channels, 1, depth, packed.data());
  Job product = job;
  if (job.wide != 0 && largest >= kMostOfParts) {
    product.wide = 2;
  }
  product.weights = packed.data();
  return convolve(product, memory);
}

}  // namespace hil::npu
