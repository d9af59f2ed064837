// aten::gt.Tensor_out(self, other, out): out = self > other, with broadcasting.
#include "kernels/comparison.h"
#include "kernels/operators.h"

namespace hil {

Error op_gt(KernelContext& ctx, Args args) { return compare(ctx, args, kGreater); }

}  // namespace hil
