// aten::gt.Tensor_out(self, other, out): out = self > other, with broadcasting.
#include "kernels/comparison.h"
#include "kernels/operator.h"

namespace hil {

Error op_gt(KernelContext& ctx, Args args) { return compare(ctx, args, kGreater); }
HIL_OPERATOR("aten::gt.Tensor_out", op_gt);

}  // namespace hil
