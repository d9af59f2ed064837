// aten::adaptive_max_pool2d.out(self, output_size, out, indices) of any type and dim
// order: output i is the largest of the inputs from floor(i * in / out) to
// ceil((i + 1) * in / out). NaN beats everything, the first of equals wins.
#include "kernels/arithmetic.h"
#include "kernels/elements.h"
#include "kernels/operator.h"
#include "kernels/pooling.h"

namespace hil {

namespace {

int32_t first_of(const Axis& axis, int32_t position) {
  return static_cast<int32_t>(int64_t{position} * axis.in / axis.out);
}

int32_t end_of(const Axis& axis, int32_t position) {
  return static_cast<int32_t>(((int64_t{position} + 1) * axis.in + axis.out - 1) / axis.out);
}

bool beats(const Scalar& x, const Scalar& best) {
  return x.is_real ? x.real > best.real || x.real != x.real : x.whole > best.whole;
}

void pool(const Window& win, const Tensor& self, Tensor& out, Tensor& indices) {
  const PlaneSteps in(self), to(out), place(indices);
  const Load load = load_for(self.type);
  const Store store = store_for(self.type);
  const size_t size = element_size(self.type);
  each_position(win, [&](int32_t b, int32_t c, int32_t y, int32_t x) {
    const int32_t top = first_of(win.h, y), left = first_of(win.w, x);
    Scalar best = load(self.data + in.at(b, c, top, left) * size);
    int64_t index = int64_t{top} * win.w.in + left;
    for (int32_t iy = top; iy < end_of(win.h, y); ++iy) {
      for (int32_t ix = left; ix < end_of(win.w, x); ++ix) {
        const Scalar value = load(self.data + in.at(b, c, iy, ix) * size);
        if (!beats(value, best)) continue;
        best = value;
        index = int64_t{iy} * win.w.in + ix;
      }
    }
    store(best, out.data + to.at(b, c, y, x) * size);
    indices.as<int64_t>()[place.at(b, c, y, x)] = index;
  });
}

}  // namespace

Error op_adaptive_max_pool2d(KernelContext& ctx, Args args) {
  Window win = {};
  const Tensor& self = ctx.tensor(args, 0);
  int32_t sizes[2];
  ctx.int_list(args, 1, sizes, 2);
  Tensor& out = ctx.tensor(args, 2);
  Tensor& indices = ctx.tensor(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "self", self, self.type));
  HIL_TRY(check_tensor(ctx, "out", out, self.type));
  HIL_TRY(check_tensor(ctx, "indices", indices, ScalarType::Long));
  // The geometry of one window, whose place is worked out for each position.
  win.h.kernel = win.w.kernel = win.h.stride = win.w.stride = 1;
  win.h.dilation = win.w.dilation = 1;
  HIL_TRY(read_planes(ctx, self, false, &win));
  win.h.out = sizes[0], win.w.out = sizes[1];
  HIL_TRY(check_planes(ctx, "out", out, self, win));
  HIL_TRY(check_planes(ctx, "indices", indices, self, win));
  if (self.numel == 0 && out.numel != 0) return ctx.fail(Error::InvalidArgument, "self is empty");
  if (load_for(self.type) == nullptr) return unsupported_type(ctx, self.type);
  pool(win, self, out, indices);
  return Error::Ok;
}
HIL_OPERATOR("aten::adaptive_max_pool2d.out", op_adaptive_max_pool2d);

}  // namespace hil
