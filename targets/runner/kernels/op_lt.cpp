// aten::lt.Tensor_out(self, other, out): out = self < other, with broadcasting.
#include "kernels/comparison.h"
#include "kernels/operators.h"

namespace hil {

Error op_lt(KernelContext& ctx, Args args) { return compare(ctx, args, kLess); }

}  // namespace hil
