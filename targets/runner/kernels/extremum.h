// Minimum and maximum of two int8 tensors with broadcasting.
#pragma once

#include "kernels/checks.h"
#include "kernels/layout.h"

namespace hil {

/// The walk of `out` with the offsets of both operands, in out's memory order.
inline Error broadcast_walk(KernelContext& ctx, const Tensor& a, const Tensor& b, const Tensor& out,
                            Walk* walk) {
  const Strides so = strides_of(out), sa = strides_of(a), sb = strides_of(b);
  const auto step = [&](const Tensor& t, const Strides& s, size_t dim, int32_t size, bool* fits) {
    if (dim + t.rank < out.rank) return int32_t{0};
    const size_t own = dim + t.rank - out.rank;
    if (t.sizes[own] == size) return size == 1 ? 0 : s.step[own];
    *fits = *fits && t.sizes[own] == 1;
    return int32_t{0};
  };
  bool fits = a.rank <= out.rank && b.rank <= out.rank;
  size_t numel = 1;
  for (size_t i = 0; fits && i < out.rank; ++i) {
    const size_t dim = out.dim_order[i];
    const int32_t size = out.sizes[dim];
    const int32_t step_a = step(a, sa, dim, size, &fits), step_b = step(b, sb, dim, size, &fits);
    const bool from_an_operand = size == 1 || step_a != 0 || step_b != 0 || size == 0;
    fits = fits && from_an_operand;
    numel *= static_cast<size_t>(size);
    walk->nest({size, so.step[dim], step_a, step_b});
  }
  if (fits && numel == out.numel) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "out is not the broadcast of self and other");
}

template <typename Choose>
void choose_row(const int8_t* a, const int8_t* b, int8_t* out, const Walk::Loop& loop,
                Choose choose) {
  int32_t i = 0;
#if defined(__ARM_FEATURE_MVE)
  const bool vectors = loop.out == 1 && loop.a <= 1 && loop.b <= 1;
  for (; vectors && i < loop.count; i += 16) {
    const mve_pred16_t lanes = vctp8q(static_cast<uint32_t>(loop.count - i));
    const int8x16_t x = loop.a == 1 ? vldrbq_z_s8(a + i, lanes) : vdupq_n_s8(*a);
    const int8x16_t y = loop.b == 1 ? vldrbq_z_s8(b + i, lanes) : vdupq_n_s8(*b);
    vstrbq_p_s8(out + i, choose(x, y), lanes);
  }
#endif
  for (; i < loop.count; ++i) out[i * loop.out] = choose(a[i * loop.a], b[i * loop.b]);
}

template <typename Choose>
Error extremum(KernelContext& ctx, Args args, Choose choose) {
  const Tensor& self = ctx.tensor(args, 0);
  const Tensor& other = ctx.tensor(args, 1);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "self", self, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "other", other, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Char));
  Walk walk;
  HIL_TRY(broadcast_walk(ctx, self, other, out, &walk));
  if (out.numel == 0) return Error::Ok;
  walk.each_row([&](int32_t o, int32_t a, int32_t b, const Walk::Loop& loop) {
    choose_row(self.as<int8_t>() + a, other.as<int8_t>() + b, out.as<int8_t>() + o, loop, choose);
  });
  return Error::Ok;
}

}  // namespace hil
