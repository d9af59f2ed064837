// aten::any.out(self, dim, keepdim, out): whether an element along a dimension is not 0, of any
// element type; the result is bool.
#include "kernels/arithmetic.h"
#include "kernels/elements.h"
#include "kernels/operator.h"
#include "kernels/reduction.h"

namespace hil {

Error op_any(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const int32_t dim = ctx.int32(args, 1);
  const bool keepdim = ctx.boolean(args, 2);
  Tensor& out = ctx.tensor(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "self", self, self.type));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Bool));
  const Load load = load_for(self.type);
  if (load == nullptr) return unsupported_type(ctx, self.type);
  uint32_t reduced;
  HIL_TRY(reduced_dims(ctx, &dim, 1, self.rank, &reduced));
  Walk walk;
  HIL_TRY(reduction_walk(ctx, self, out, reduced, keepdim, &walk));
  for (size_t i = 0; i < out.numel; ++i) out.data[i] = 0;
  const int32_t size = static_cast<int32_t>(element_size(self.type));
  walk.each_row([&](int32_t o, int32_t a, int32_t, const Walk::Loop& loop) {
    for (int32_t i = 0; i < loop.count; ++i) {
      const Scalar value = load(self.data + (a + i * loop.a) * size);
      if (value.is_real ? value.real != 0.0 : value.whole != 0) out.data[o + i * loop.out] = 1;
    }
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::any.out", op_any);

}  // namespace hil
