#include "kernels/upsampling.h"

#include "kernels/move.h"

namespace hil {

namespace {

/// As ExecuTorch's kernels compute it: in double, by way of the factor.
float scale_of(const Axis& axis, double factor, bool corners) {
  if (!corners) return static_cast<float>(1.0 / factor);
  if (axis.out <= 1) return 0.0f;
  return static_cast<float>(static_cast<double>(axis.in - 1) / (axis.out - 1));
}

Error read_axis(KernelContext& ctx, Axis* axis, int32_t in, int32_t out) {
  axis->in = in, axis->out = out;
  if (in > 0 && out > 0) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "an image without pixels");
}

}  // namespace

Error read_upsampling(KernelContext& ctx, Args args, size_t factors, bool corners,
                      const Tensor& self, const Tensor& out, Upsampling* result) {
  HIL_TRY(check_movable(ctx, self, out));
  const bool fits = self.rank == 4 && out.rank == 4 && self.sizes[0] == out.sizes[0] &&
                    self.sizes[1] == out.sizes[1];
  if (!fits) return ctx.fail(Error::InvalidArgument, "self and out are not images of one kind");
  Window& window = result->window;
  window.batch = out.sizes[0], window.channels_out = out.sizes[1];
  HIL_TRY(read_axis(ctx, &window.h, self.sizes[2], out.sizes[2]));
  HIL_TRY(read_axis(ctx, &window.w, self.sizes[3], out.sizes[3]));
  const Value &size = *args[1], &factor = *args[factors];
  double h = static_cast<double>(window.h.out) / window.h.in;
  double w = static_cast<double>(window.w.out) / window.w.in;
  bool named = false;
  if (size.tag == Tag::None && factor.tag == Tag::DoubleList && factor.doubles.size() == 2) {
    h = factor.doubles[0], w = factor.doubles[1];
    named = h > 0 && w > 0 && static_cast<double>(window.h.out) <= window.h.in * h &&
            window.h.in * h < window.h.out + 1.0 &&
            static_cast<double>(window.w.out) <= window.w.in * w &&
            window.w.in * w < window.w.out + 1.0;
  } else if (size.tag == Tag::IntList && factor.tag == Tag::None) {
    int32_t sizes[2];
    ctx.int_list(args, 1, sizes, 2);
    if (!ctx.ok()) return ctx.argument_error();
    named = sizes[0] == window.h.out && sizes[1] == window.w.out;
  }
  if (!named) return ctx.fail(Error::InvalidArgument, "out has not the size that is asked for");
  result->scale_h = scale_of(window.h, h, corners);
  result->scale_w = scale_of(window.w, w, corners);
  return Error::Ok;
}

}  // namespace hil
