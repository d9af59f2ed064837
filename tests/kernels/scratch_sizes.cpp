// The scratch formulas as a C library for test_scratch_sizes.py.
#include "kernels/scratch_sizes.h"

using namespace hil;

namespace {

// values: batch, channels in, channels out, then in, out, kernel, stride, pad, dilation of h and w
Window window_of(const int32_t* v) {
  return {v[0],
          v[1],
          v[2],
          {v[3], v[4], v[5], v[6], v[7], v[8]},
          {v[9], v[10], v[11], v[12], v[13], v[14]}};
}

}  // namespace

extern "C" size_t conv_size(int isa, const int32_t* values, int32_t weight_channels) {
  return conv_scratch(static_cast<ScratchIsa>(isa), window_of(values), weight_channels);
}
extern "C" size_t depthwise_size(int isa, const int32_t* values) {
  return depthwise_scratch(static_cast<ScratchIsa>(isa), window_of(values));
}
extern "C" size_t avg_pool_size(int isa, int32_t channels) {
  return avg_pool_scratch(static_cast<ScratchIsa>(isa), channels);
}
extern "C" size_t matmul_size(int isa, int32_t columns) {
  return matmul_scratch(static_cast<ScratchIsa>(isa), static_cast<size_t>(columns));
}
extern "C" size_t transpose_conv_size(int isa, const int32_t* values) {
  return transpose_conv_scratch(static_cast<ScratchIsa>(isa), window_of(values));
}
extern "C" size_t transpose_conv_reverse_size(int isa, const int32_t* values) {
  return transpose_conv_reverse_scratch(static_cast<ScratchIsa>(isa), window_of(values));
}
