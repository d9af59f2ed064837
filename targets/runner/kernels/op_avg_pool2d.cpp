// aten::avg_pool2d.out(self, kernel_size, stride, padding, ceil_mode, count_include_pad,
//   divisor_override?, out) for float, any dim order.
#include "kernels/operator.h"
#include "kernels/pooling.h"

namespace hil {

namespace {

struct Average {
  Window window;
  bool counts_pad;
  int32_t divisor;  // 0: the size of the window

  int32_t divide_by(int32_t oy, int32_t ox, int32_t inside) const {
    if (divisor != 0) return divisor;
    return counts_pad ? padded_taps(window.h, oy) * padded_taps(window.w, ox) : inside;
  }
  /// Taps that are inside the image or its padding: in ceil mode the last window sticks out.
  static int32_t padded_taps(const Axis& axis, int32_t origin) {
    const int32_t room = axis.in + axis.pad - origin;
    return room < axis.kernel ? room : axis.kernel;
  }
  float at(const float* plane, const PlaneSteps& in, int32_t y, int32_t x) const;
};

/// Summed row by row, as torch does.
float Average::at(const float* plane, const PlaneSteps& in, int32_t y, int32_t x) const {
  const int32_t oy = window.h.origin(y), ox = window.w.origin(x);
  const Taps rows = taps_inside(window.h, oy), columns = taps_inside(window.w, ox);
  float sum = 0.0f;
  for (int32_t ky = rows.begin; ky < rows.end; ++ky) {
    for (int32_t kx = columns.begin; kx < columns.end; ++kx) {
      sum += plane[in.at(0, 0, oy + ky, ox + kx)];
    }
  }
  const int32_t inside = (rows.end - rows.begin) * (columns.end - columns.begin);
  return inside == 0 ? 0.0f : sum / static_cast<float>(divide_by(oy, ox, inside));
}

}  // namespace

Error op_avg_pool2d(KernelContext& ctx, Args args) {
  Average average = {};
  const Tensor& self = ctx.tensor(args, 0);
  read_pooling(ctx, args, &average.window);
  const bool ceil_mode = ctx.boolean(args, 4);
  average.counts_pad = ctx.boolean(args, 5);
  const bool overridden = args.size() > 6 && args[6]->tag != Tag::None;
  if (overridden) average.divisor = ctx.int32(args, 6);
  Tensor& out = ctx.tensor(args, 7);
  if (!ctx.ok()) return ctx.argument_error();

  HIL_TRY(check_tensor(ctx, "self", self, ScalarType::Float));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Float));
  if (overridden && average.divisor == 0) {
    return ctx.fail(Error::InvalidArgument, "divisor_override is 0");
  }
  HIL_TRY(read_planes(ctx, self, ceil_mode, &average.window));
  HIL_TRY(check_planes(ctx, "out", out, self, average.window));
  const PlaneSteps in(self), to(out);
  each_position(average.window, [&](int32_t b, int32_t c, int32_t y, int32_t x) {
    out.as<float>()[to.at(b, c, y, x)] = average.at(self.as<float>() + in.at(b, c, 0, 0), in, y, x);
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::avg_pool2d.out", op_avg_pool2d);

}  // namespace hil
