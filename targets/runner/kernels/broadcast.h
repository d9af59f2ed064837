// Two operands that broadcast to the shape of one output.
#pragma once

#include "kernels/checks.h"
#include "kernels/layout.h"

namespace hil {

/// The step of `t` along each dimension of `out`, 0 where it repeats; false when it does not
/// broadcast to `out`.
bool broadcast_steps(const Tensor& t, const Tensor& out, int32_t* steps);

Error broadcast_error(KernelContext& ctx);

/// The walk of `out` with the offsets of both operands, in out's memory order.
Error broadcast_walk(KernelContext& ctx, const Tensor& a, const Tensor& b, const Tensor& out,
                     Walk* walk);

/// Calls each(a element, b element) for every element of `out` and stores the result.
template <typename T, typename Each>
void for_each_pair(const Walk& walk, const Tensor& a, const Tensor& b, Tensor& out, Each each) {
  walk.each_row([&](int32_t o, int32_t i, int32_t j, const Walk::Loop& loop) {
    const T *x = a.as<T>() + i, *y = b.as<T>() + j;
    T* target = out.as<T>() + o;
    for (int32_t n = loop.count; n != 0; --n, target += loop.out, x += loop.a, y += loop.b) {
      *target = each(*x, *y);
    }
  });
}

}  // namespace hil
