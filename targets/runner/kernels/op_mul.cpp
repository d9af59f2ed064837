// aten::mul.out(self, other, out)
#include "kernels/arithmetic.h"
#include "kernels/operator.h"

namespace hil {

Error op_mul(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const Tensor& other = ctx.tensor(args, 1);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  return arithmetic(
      ctx, self, other, out, [](float a, float b) { return a * b; },
      [](int64_t a, int64_t b) { return static_cast<uint64_t>(a) * static_cast<uint64_t>(b); });
}
HIL_OPERATOR("aten::mul.out", op_mul);

}  // namespace hil
