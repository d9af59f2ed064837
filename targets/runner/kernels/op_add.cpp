// aten::add.out(self, other, alpha, out): self + alpha * other.
#include "kernels/arithmetic.h"
#include "kernels/operators.h"

namespace hil {

Error op_add(KernelContext& ctx, Args args) { return add_scaled(ctx, args, false); }

}  // namespace hil
