// aten::_softmax.out(self, dim, half_to_float, out) for float, any dim order. A row with NaN or
// +infinity is NaN throughout, as in torch; its sums have another order, so that results differ
// from torch's in the last bits.
#include "kernels/checks.h"
#include "kernels/exponential.h"
#include "kernels/layout.h"
#include "kernels/operator.h"

namespace hil {

namespace {

/// exp() of what is at most 0, -infinity or NaN.
float decay(float x) {
  if (x < kLowestExponent) return 0.0f;
  return x <= 0.0f ? exponential(x) : x;  // the rest is NaN
}

/// Elements along the dimension, and the steps between them.
struct Line {
  int32_t count, in, out;
};

void softmax_of(const float* in, float* out, const Line& line) {
  float top = *in;
  for (int32_t i = 1; i < line.count; ++i) top = in[i * line.in] > top ? in[i * line.in] : top;
  float sum = 0.0f;
  for (int32_t i = 0; i < line.count; ++i) {
    sum += out[i * line.out] = decay(in[i * line.in] - top);
  }
  for (int32_t i = 0; i < line.count; ++i) out[i * line.out] /= sum;
}

}  // namespace

Error op_softmax_float(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const int32_t dim = ctx.int32(args, 1);
  Tensor& out = ctx.tensor(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "self", self, ScalarType::Float));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Float));
  if (!same_shape(self, out)) {
    return ctx.fail(Error::InvalidArgument, "self and out differ in shape");
  }
  size_t axis;
  HIL_TRY(check_dim(ctx, dim, self.rank, &axis));
  if (out.numel == 0) return Error::Ok;
  const Strides from = strides_of(self), to = strides_of(out);
  const Line line = {self.sizes[axis], from.step[axis], to.step[axis]};
  Walk others;
  for (size_t i = 0; i < out.rank; ++i) {
    const size_t d = out.dim_order[i];
    if (d != axis) others.nest({out.sizes[d], to.step[d], from.step[d], 0});
  }
  others.each_row([&](int32_t o, int32_t a, int32_t, const Walk::Loop& loop) {
    for (int32_t i = 0; i < loop.count; ++i) {
      softmax_of(self.as<float>() + a + i * loop.a, out.as<float>() + o + i * loop.out, line);
    }
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::_softmax.out", op_softmax_float);

}  // namespace hil
