// aten::_log_softmax.out(self, dim, half_to_float, out) for float, any dim order: self less its
// largest and less the logarithm of the sum, in the order of ExecuTorch's portable kernel. A row
// with NaN or +infinity is NaN throughout.
#include "kernels/exponential.h"
#include "kernels/portable/curves.h"
#include "kernels/softmax_lines.h"

namespace hil {

namespace {

void log_softmax_of(const float* in, float* out, const Line& line) {
  const float top = largest(in, line);
  float sum = 0.0f;
  for (int32_t i = 0; i < line.count; ++i) sum += decay(in[i * line.in] - top);
  const float log_sum = sum == sum ? static_cast<float>(logarithm(sum)) : sum;
  for (int32_t i = 0; i < line.count; ++i) out[i * line.out] = in[i * line.in] - top - log_sum;
}

}  // namespace

Error op_log_softmax(KernelContext& ctx, Args args) {
  return for_each_line(ctx, args, log_softmax_of);
}
HIL_OPERATOR("aten::_log_softmax.out", op_log_softmax);

}  // namespace hil
