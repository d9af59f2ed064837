// Operators that compute each float on its own.
#pragma once

#include "kernels/arithmetic.h"

namespace hil {

/// ExecuTorch's kernels demand it, too.
inline Error check_same_layout(KernelContext& ctx, const Tensor& self, const Tensor& out) {
  if (same_layout(self, out)) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "self and out differ in shape or dim order");
}

/// out = each(self), element by element.
template <typename Each>
Error for_each_float(KernelContext& ctx, const Tensor& self, Tensor& out, Each each) {
  HIL_TRY(check_operands(ctx, self, self, out));
  HIL_TRY(check_same_layout(ctx, self, out));
  if (out.type != ScalarType::Float) return unsupported_type(ctx, out.type);
  const float* in = self.as<float>();
  for (size_t i = 0; i < out.numel; ++i) out.as<float>()[i] = each(in[i]);
  return Error::Ok;
}

}  // namespace hil
