// cortex_m::maximum.out(self, other, out)
#include "kernels/extremum.h"
#include "kernels/operator.h"

namespace hil {

namespace {

struct Maximum {
  int8_t operator()(int8_t a, int8_t b) const { return a > b ? a : b; }
#if defined(__ARM_FEATURE_MVE)
  int8x16_t operator()(int8x16_t a, int8x16_t b) const { return vmaxq_s8(a, b); }
#endif
};

}  // namespace

Error op_maximum(KernelContext& ctx, Args args) { return extremum(ctx, args, Maximum()); }
HIL_OPERATOR("cortex_m::maximum.out", op_maximum);

}  // namespace hil
