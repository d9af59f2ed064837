// aten::_adaptive_avg_pool2d.out(self, output_size, out) for floats of any dim order: output i is
// the mean of the inputs from floor(i * in / out) to ceil((i + 1) * in / out). Sums go in order, in
// float, as those of ExecuTorch's portable kernel do.
#include "kernels/arithmetic.h"
#include "kernels/operator.h"
#include "kernels/pooling.h"

namespace hil {

namespace {

void average(const Window& win, const Tensor& self, Tensor& out) {
  const PlaneSteps in(self), to(out);
  const float* values = self.as<float>();
  float* means = out.as<float>();
  each_position(win, [&](int32_t b, int32_t c, int32_t y, int32_t x) {
    const Extent rows = adaptive_extent(win.h, y), columns = adaptive_extent(win.w, x);
    float sum = 0.0f;
    for (int32_t iy = rows.begin; iy < rows.end; ++iy) {
      for (int32_t ix = columns.begin; ix < columns.end; ++ix) sum += values[in.at(b, c, iy, ix)];
    }
    const int32_t count = (rows.end - rows.begin) * (columns.end - columns.begin);
    means[to.at(b, c, y, x)] = sum / static_cast<float>(count);
  });
}

}  // namespace

Error op_adaptive_avg_pool2d(KernelContext& ctx, Args args) {
  Window win = {};
  const Tensor& self = ctx.tensor(args, 0);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(read_adaptive(ctx, args, self, out, &win));
  if (self.type != ScalarType::Float) return unsupported_type(ctx, self.type);
  average(win, self, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::_adaptive_avg_pool2d.out", op_adaptive_avg_pool2d);

}  // namespace hil
