// What the operators that enlarge images share: their arguments, and the scales that follow.
#pragma once

#include "kernels/pooling.h"

namespace hil {

/// Input rows and columns per output row and column.
struct Upsampling {
  Window window;  // extents only
  float scale_h, scale_w;
};

/// output_size (argument 1) or scale_factors (`factors`); the other is None. With `corners` the
/// first and last pixels of both images lie on each other.
Error read_upsampling(KernelContext& ctx, Args args, size_t factors, bool corners,
                      const Tensor& self, const Tensor& out, Upsampling* result);

}  // namespace hil
