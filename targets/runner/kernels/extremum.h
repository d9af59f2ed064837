// Minimum and maximum of two int8 tensors with broadcasting.
#pragma once

#include "kernels/broadcast.h"

namespace hil {

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
