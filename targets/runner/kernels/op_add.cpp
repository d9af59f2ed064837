// aten::add.out(self, other, alpha, out): self + alpha * other.
#include "kernels/arithmetic.h"
#include "kernels/operator.h"

namespace hil {

Error op_add(KernelContext& ctx, Args args) { return add_scaled(ctx, args, false); }
HIL_OPERATOR("aten::add.out", op_add);

}  // namespace hil
