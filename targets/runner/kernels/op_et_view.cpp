// executorch_prim::et_view.default(self, size, out): out becomes another name for self's storage.
#include "kernels/checks.h"
#include "kernels/operator.h"

namespace hil {

Error op_et_view(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "self", self, self.type));
  HIL_TRY(check_numel(ctx, "out", out, self.numel));
  if (out.type != self.type || out.nbytes != self.nbytes) {
    return ctx.fail(Error::InvalidArgument, "out differs from self in element type or size");
  }
  out.data = self.data;
  return Error::Ok;
}
HIL_OPERATOR("executorch_prim::et_view.default", op_et_view);

}  // namespace hil
