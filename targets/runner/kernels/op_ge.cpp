// aten::ge.Tensor_out(self, other, out): out = self >= other, with broadcasting.
#include "kernels/comparison.h"
#include "kernels/operator.h"

namespace hil {

Error op_ge(KernelContext& ctx, Args args) { return compare(ctx, args, kGreater | kEqual); }
HIL_OPERATOR("aten::ge.Tensor_out", op_ge);

}  // namespace hil
