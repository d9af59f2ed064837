#include "kernels/softmax_lines.h"

#include "kernels/checks.h"

namespace hil {

Error for_each_line(KernelContext& ctx, Args args,
                    void (*each)(const float* in, float* out, const Line& line)) {
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
      each(self.as<float>() + a + i * loop.a, out.as<float>() + o + i * loop.out, line);
    }
  });
  return Error::Ok;
}

}  // namespace hil
