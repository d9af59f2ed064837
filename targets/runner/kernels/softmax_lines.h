// What float softmaxes share: (self, dim, half_to_float, out) of any dim order, line by line.
#pragma once

#include "kernels/layout.h"
#include "kernels/operator.h"

namespace hil {

/// Elements along the dimension, and the steps between them.
struct Line {
  int32_t count, in, out;
};

inline float largest(const float* in, const Line& line) {
  float top = *in;
  for (int32_t i = 1; i < line.count; ++i) top = in[i * line.in] > top ? in[i * line.in] : top;
  return top;
}

/// Checks the arguments and calls each(in, out, line) for every line along the dimension.
Error for_each_line(KernelContext& ctx, Args args,
                    void (*each)(const float* in, float* out, const Line& line));

}  // namespace hil
