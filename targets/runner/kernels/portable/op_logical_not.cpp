// aten::logical_not.out(self, out): 1 where self is 0, of any element types.
#include "kernels/elements.h"
#include "kernels/operator.h"
#include "kernels/portable/unary.h"

namespace hil {

Error op_logical_not(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  Tensor& out = ctx.tensor(args, 1);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "self", self, self.type));
  HIL_TRY(check_tensor(ctx, "out", out, out.type));
  HIL_TRY(check_same_layout(ctx, self, out));
  const Load load = load_for(self.type);
  const Store store = store_for(out.type);
  if (load == nullptr) return unsupported_type(ctx, self.type);
  if (store == nullptr) return unsupported_type(ctx, out.type);
  const size_t from = element_size(self.type), to = element_size(out.type);
  for (size_t i = 0; i < out.numel; ++i) {
    const Scalar value = load(self.data + i * from);
    const bool zero = value.is_real ? value.real == 0.0 : value.whole == 0;
    store(Scalar::of(zero ? 1 : 0), out.data + i * to);
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::logical_not.out", op_logical_not);

}  // namespace hil
