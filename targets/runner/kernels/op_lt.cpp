// aten::lt.Tensor_out(self, other, out): out = self < other, with broadcasting.
#include "kernels/comparison.h"
#include "kernels/operator.h"

namespace hil {

Error op_lt(KernelContext& ctx, Args args) { return compare(ctx, args, kLess); }
HIL_OPERATOR("aten::lt.Tensor_out", op_lt);

}  // namespace hil
