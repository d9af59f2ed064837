// cortex_m::maximum.out(self, other, out)
#include "kernels/extremum.h"
#include "kernels/operator.h"

namespace hil {

Error op_maximum(KernelContext& ctx, Args args) {
  return extremum(ctx, args, isa::choose_row<isa::Maximum>);
}
HIL_OPERATOR("cortex_m::maximum.out", op_maximum);

}  // namespace hil
