// aten's add, sub and mul of two tensors of one type that broadcast.
#pragma once

#include "kernels/broadcast.h"

namespace hil {

inline Error check_operands(KernelContext& ctx, const Tensor& self, const Tensor& other,
                            const Tensor& out) {
  HIL_TRY(check_tensor(ctx, "self", self, out.type));
  HIL_TRY(check_tensor(ctx, "other", other, out.type));
  return check_tensor(ctx, "out", out, out.type);
}

inline Error unsupported_type(KernelContext& ctx, ScalarType type) {
  return ctx.fail(Error::NotSupported, "element type %d is not supported", static_cast<int>(type));
}

/// `on_float(a, b)` for float tensors, `on_integer(a, b)` in 64 bits, modulo the type, for others.
template <typename OnFloat, typename OnInteger>
Error arithmetic(KernelContext& ctx, const Tensor& self, const Tensor& other, Tensor& out,
                 OnFloat on_float, OnInteger on_integer) {
  HIL_TRY(check_operands(ctx, self, other, out));
  Walk walk;
  HIL_TRY(broadcast_walk(ctx, self, other, out, &walk));
  if (out.numel == 0) return Error::Ok;
  const auto integers = [&](auto zero) {
    using T = decltype(zero);
    for_each_pair<T>(walk, self, other, out,
                     [&](T a, T b) { return static_cast<T>(on_integer(int64_t{a}, int64_t{b})); });
    return Error::Ok;
  };
  switch (out.type) {
    case ScalarType::Float:
      for_each_pair<float>(walk, self, other, out, on_float);
      return Error::Ok;
    case ScalarType::Char:
      return integers(int8_t{});
    case ScalarType::Int:
      return integers(int32_t{});
    case ScalarType::Long:
      return integers(int64_t{});
    default:
      return unsupported_type(ctx, out.type);
  }
}

/// self + alpha * other, alpha negated for a difference.
inline Error add_scaled(KernelContext& ctx, Args args, bool difference) {
  const Tensor& self = ctx.tensor(args, 0);
  const Tensor& other = ctx.tensor(args, 1);
  const double alpha = difference ? -ctx.number(args, 2) : ctx.number(args, 2);
  Tensor& out = ctx.tensor(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  if (alpha < -2147483648.0 || alpha > 2147483647.0) {
    return ctx.fail(Error::InvalidArgument, "alpha does not fit 32 bits");
  }
  const float factor = static_cast<float>(alpha);
  const int64_t whole = static_cast<int32_t>(alpha);
  if (out.type != ScalarType::Float && static_cast<double>(whole) != alpha) {
    return ctx.fail(Error::InvalidArgument, "alpha of integers is not an integer");
  }
  return arithmetic(
      ctx, self, other, out, [=](float a, float b) { return a + factor * b; },
      [=](int64_t a, int64_t b) {
        return static_cast<uint64_t>(a) + static_cast<uint64_t>(whole) * static_cast<uint64_t>(b);
      });
}

}  // namespace hil
