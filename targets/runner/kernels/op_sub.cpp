// aten::sub.out(self, other, alpha, out): self - alpha * other.
#include "kernels/arithmetic.h"
#include "kernels/operator.h"

namespace hil {

Error op_sub(KernelContext& ctx, Args args) { return add_scaled(ctx, args, true); }
HIL_OPERATOR("aten::sub.out", op_sub);

}  // namespace hil
