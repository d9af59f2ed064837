// aten::upsample_bilinear2d.vec_out(self, output_size?, align_corners, scale_factors?, out) for
// float, any dim order: along a row first, then between the rows, in float32.
#include <cmath>

#include "kernels/arithmetic.h"
#include "kernels/operator.h"
#include "kernels/upsampling.h"

namespace hil {

namespace {

/// The two neighbours of an output position along an axis, and their weights.
struct Blend {
  int32_t first, second;
  float weight, rest;
};

Blend blend_at(const Axis& axis, float scale, bool corners, int32_t position) {
  if (axis.in == axis.out) return {position, position, 1.0f, 0.0f};
  const float middle = scale * (static_cast<float>(position) + 0.5f) - 0.5f;
  const float inside = middle < 0.0f ? 0.0f : middle;
  const float at = corners ? scale * static_cast<float>(position) : inside;
  const float last = static_cast<float>(axis.in - 1);
  const int32_t first = at < last ? static_cast<int32_t>(std::floor(at)) : axis.in - 1;
  const float beyond = at - static_cast<float>(first);
  const float rest = beyond > 1.0f ? 1.0f : beyond;
  return {first, first + (first < axis.in - 1 ? 1 : 0), 1.0f - rest, rest};
}

}  // namespace

Error op_upsample_bilinear2d(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const bool corners = ctx.boolean(args, 2);
  Tensor& out = ctx.tensor(args, 4);
  if (!ctx.ok()) return ctx.argument_error();
  if (self.type != ScalarType::Float) return unsupported_type(ctx, self.type);
  Upsampling up = {};
  HIL_TRY(read_upsampling(ctx, args, 3, corners, self, out, &up));
  const PlaneSteps in(self), to(out);
  each_position(up.window, [&](int32_t b, int32_t c, int32_t y, int32_t x) {
    const Blend rows = blend_at(up.window.h, up.scale_h, corners, y);
    const Blend columns = blend_at(up.window.w, up.scale_w, corners, x);
    const float* plane = self.as<float>() + in.at(b, c, 0, 0);
    const auto along = [&](int32_t row) {
      return plane[in.at(0, 0, row, columns.first)] * columns.weight +
             plane[in.at(0, 0, row, columns.second)] * columns.rest;
    };
    out.as<float>()[to.at(b, c, y, x)] = along(rows.first) * rows.weight +
                                         along(rows.second) * rows.rest;
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::upsample_bilinear2d.vec_out", op_upsample_bilinear2d);

}  // namespace hil
