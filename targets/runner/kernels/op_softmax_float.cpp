// aten::_softmax.out(self, dim, half_to_float, out) for float, any dim order. A row with NaN or
// +infinity is NaN throughout, as in torch; its sums have another order, so that results differ
// from torch's in the last bits.
#include "kernels/exponential.h"
#include "kernels/softmax_lines.h"

namespace hil {

namespace {

void softmax_of(const float* in, float* out, const Line& line) {
  const float top = largest(in, line);
  float sum = 0.0f;
  for (int32_t i = 0; i < line.count; ++i) {
    sum += out[i * line.out] = decay(in[i * line.in] - top);
  }
  for (int32_t i = 0; i < line.count; ++i) out[i * line.out] /= sum;
}

}  // namespace

Error op_softmax_float(KernelContext& ctx, Args args) {
  return for_each_line(ctx, args, softmax_of);
}
HIL_OPERATOR("aten::_softmax.out", op_softmax_float);

}  // namespace hil
