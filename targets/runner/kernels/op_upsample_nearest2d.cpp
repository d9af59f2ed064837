// aten::upsample_nearest2d.vec_out(self, output_size?, scale_factors?, out), any type and dim
// order: pixel floor(position * scale), the scale and the product being float32.
#include <cmath>

#include "kernels/bytes.h"
#include "kernels/operator.h"
#include "kernels/upsampling.h"

namespace hil {

namespace {

int32_t nearest(float scale, int32_t position, int32_t extent) {
  const float at = std::floor(static_cast<float>(position) * scale);
  return at < static_cast<float>(extent - 1) ? static_cast<int32_t>(at) : extent - 1;
}

}  // namespace

Error op_upsample_nearest2d(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  Tensor& out = ctx.tensor(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  Upsampling up = {};
  HIL_TRY(read_upsampling(ctx, args, 2, false, self, out, &up));
  const PlaneSteps in(self), to(out);
  const size_t size = element_size(self.type);
  each_position(up.window, [&](int32_t b, int32_t c, int32_t y, int32_t x) {
    const int32_t iy = nearest(up.scale_h, y, up.window.h.in);
    const int32_t ix = nearest(up.scale_w, x, up.window.w.in);
    copy_bytes(out.data + to.at(b, c, y, x) * size, self.data + in.at(b, c, iy, ix) * size, size);
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::upsample_nearest2d.vec_out", op_upsample_nearest2d);

}  // namespace hil
