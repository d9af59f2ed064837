// Moving elements between layouts without looking at them.
#pragma once

#include "kernels/checks.h"
#include "kernels/layout.h"

namespace hil {

/// Copies elements of `size` bytes along a walk with `out` as the target and `a` as the source.
void move_all(const Walk& walk, const void* in, void* out, size_t size);

/// Same type, with storage, of a known element size.
Error check_movable(KernelContext& ctx, const Tensor& in, const Tensor& out);

/// Copies all of `in` into `out`, a tensor of the same rank, from element `first` of its storage
/// on.
void place(const Tensor& in, Tensor& out, size_t first);

/// The same elements in logical order under another shape.
Error reshape(KernelContext& ctx, const Tensor& in, Tensor& out);

/// out[i] = in[i] for every logical index, dim orders being what they are.
Error clone(KernelContext& ctx, const Tensor& in, Tensor& out);

/// Dimension i of out is dimension perm[i] of in.
Error permute(KernelContext& ctx, const Tensor& in, const int32_t* perm, size_t count, Tensor& out);

}  // namespace hil
