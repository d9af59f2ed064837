// Reductions along dimensions: which ones, and where their results go.
#pragma once

#include "kernels/checks.h"
#include "kernels/layout.h"

namespace hil {

// static: a copy in each kernel, which -Os then inlines where a shared one would be a call.

/// The dimensions as bits; all of them when none is named.
static inline Error reduced_dims(KernelContext& ctx, const int32_t* dims, size_t count, size_t rank,
                                 uint32_t* reduced) {
  *reduced = count == 0 ? ~0u : 0;
  for (size_t i = 0; i < count; ++i) {
    size_t axis;
    HIL_TRY(check_dim(ctx, dims[i], rank, &axis));
    *reduced |= 1u << axis;
  }
  return Error::Ok;
}

/// The walk of `self` in which out stands still along reduced dimensions.
static inline Error reduction_walk(KernelContext& ctx, const Tensor& self, const Tensor& out,
                                   uint32_t reduced, bool keepdim, Walk* walk) {
  const Strides from = strides_of(self), to = strides_of(out);
  int32_t out_step[kMaxRank];
  size_t next = 0;
  bool fits = true;
  for (size_t i = 0; i < self.rank; ++i) {
    const bool gone = (reduced >> i & 1) != 0;
    out_step[i] = 0;
    if (gone && !keepdim) continue;
    fits = fits && next < out.rank && out.sizes[next] == (gone ? 1 : self.sizes[i]);
    if (fits && !gone) out_step[i] = to.step[next];
    ++next;
  }
  if (!fits || next != out.rank || self.numel == 0) {
    return ctx.fail(Error::InvalidArgument, "out is not self without the reduced dimensions");
  }
  for (size_t i = 0; i < self.rank; ++i) {
    const size_t dim = self.dim_order[i];
    walk->nest({self.sizes[dim], out_step[dim], from.step[dim], 0});
  }
  return Error::Ok;
}

}  // namespace hil
