// cortex_m::minimum.out(self, other, out)
#include "kernels/extremum.h"
#include "kernels/operator.h"

namespace hil {

Error op_minimum(KernelContext& ctx, Args args) {
  return extremum(ctx, args, isa::choose_row<isa::Minimum>);
}
HIL_OPERATOR("cortex_m::minimum.out", op_minimum);

}  // namespace hil
