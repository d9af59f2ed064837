// aten::max_pool2d_with_indices.out(self, kernel_size, stride, padding, dilation, ceil_mode,
//   out, indices) for float and int8, any dim order.
#include "kernels/arithmetic.h"
#include "kernels/operator.h"
#include "kernels/pooling.h"

namespace hil {

namespace {

template <typename T>
struct Best {
  T value;
  int64_t index;
};

/// NaN beats everything, as in torch; the first of equals wins.
template <typename T>
Best<T> best_of(const Window& win, const T* plane, const PlaneSteps& in, int32_t y, int32_t x) {
  const int32_t oy = win.h.origin(y), ox = win.w.origin(x);
  const Taps rows = taps_inside(win.h, oy), columns = taps_inside(win.w, ox);
  Best<T> best = {};
  bool first = true;
  for (int32_t ky = rows.begin; ky < rows.end; ++ky) {
    const int32_t iy = oy + ky * win.h.dilation;
    for (int32_t kx = columns.begin; kx < columns.end; ++kx) {
      const int32_t ix = ox + kx * win.w.dilation;
      const T value = plane[in.at(0, 0, iy, ix)];
      if (first || value > best.value || value != value) {
        best = {value, int64_t{iy} * win.w.in + ix};
        first = false;
      }
    }
  }
  return best;
}

template <typename T>
void pool(const Window& win, const Tensor& self, Tensor& out, Tensor& indices) {
  const PlaneSteps in(self), to(out), place(indices);
  each_position(win, [&](int32_t b, int32_t c, int32_t y, int32_t x) {
    const Best<T> best = best_of<T>(win, self.as<T>() + in.at(b, c, 0, 0), in, y, x);
    out.as<T>()[to.at(b, c, y, x)] = best.value;
    indices.as<int64_t>()[place.at(b, c, y, x)] = best.index;
  });
}

}  // namespace

Error op_max_pool2d_with_indices(KernelContext& ctx, Args args) {
  Window win = {};
  const Tensor& self = ctx.tensor(args, 0);
  read_pooling(ctx, args, &win);
  read_optional_pair(ctx, args, 4, &win.h.dilation, &win.w.dilation);
  const bool ceil_mode = ctx.boolean(args, 5);
  Tensor& out = ctx.tensor(args, 6);
  Tensor& indices = ctx.tensor(args, 7);
  if (!ctx.ok()) return ctx.argument_error();

  HIL_TRY(check_tensor(ctx, "self", self, self.type));
  HIL_TRY(check_tensor(ctx, "out", out, self.type));
  HIL_TRY(check_tensor(ctx, "indices", indices, ScalarType::Long));
  HIL_TRY(read_planes(ctx, self, ceil_mode, &win));
  HIL_TRY(check_planes(ctx, "out", out, self, win));
  HIL_TRY(check_planes(ctx, "indices", indices, self, win));
  switch (self.type) {
    case ScalarType::Float:
      pool<float>(win, self, out, indices);
      return Error::Ok;
    case ScalarType::Char:
      pool<int8_t>(win, self, out, indices);
      return Error::Ok;
    default:
      return unsupported_type(ctx, self.type);
  }
}
HIL_OPERATOR("aten::max_pool2d_with_indices.out", op_max_pool2d_with_indices);

}  // namespace hil
