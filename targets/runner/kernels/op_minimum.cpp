// cortex_m::minimum.out(self, other, out)
#include "kernels/extremum.h"
#include "kernels/operator.h"

namespace hil {

namespace {

struct Minimum {
  int8_t operator()(int8_t a, int8_t b) const { return a < b ? a : b; }
#if defined(__ARM_FEATURE_MVE)
  int8x16_t operator()(int8x16_t a, int8x16_t b) const { return vminq_s8(a, b); }
#endif
};

}  // namespace

Error op_minimum(KernelContext& ctx, Args args) { return extremum(ctx, args, Minimum()); }
HIL_OPERATOR("cortex_m::minimum.out", op_minimum);

}  // namespace hil
