// aten::adaptive_max_pool2d.out(self, output_size, out, indices) of any type and dim
// order: output i is the largest of the inputs from floor(i * in / out) to
// ceil((i + 1) * in / out). NaN beats everything, the first of equals wins.
#include "kernels/arithmetic.h"
#include "kernels/elements.h"
#include "kernels/operator.h"
#include "kernels/pooling.h"

namespace hil {

namespace {

bool beats(const Scalar& x, const Scalar& best) {
  return x.is_real ? x.real > best.real || x.real != x.real : x.whole > best.whole;
}

void pool(const Window& win, const Tensor& self, Tensor& out, Tensor& indices) {
  const PlaneSteps in(self), to(out), place(indices);
  const Load load = load_for(self.type);
  const Store store = store_for(self.type);
  const size_t size = element_size(self.type);
  each_position(win, [&](int32_t b, int32_t c, int32_t y, int32_t x) {
    const Extent rows = adaptive_extent(win.h, y), columns = adaptive_extent(win.w, x);
    Scalar best = load(self.data + in.at(b, c, rows.begin, columns.begin) * size);
    int64_t index = int64_t{rows.begin} * win.w.in + columns.begin;
    for (int32_t iy = rows.begin; iy < rows.end; ++iy) {
      for (int32_t ix = columns.begin; ix < columns.end; ++ix) {
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
  Tensor& out = ctx.tensor(args, 2);
  Tensor& indices = ctx.tensor(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(read_adaptive(ctx, args, self, out, &win));
  HIL_TRY(check_tensor(ctx, "indices", indices, ScalarType::Long));
  HIL_TRY(check_planes(ctx, "indices", indices, self, win));
  if (load_for(self.type) == nullptr) return unsupported_type(ctx, self.type);
  pool(win, self, out, indices);
  return Error::Ok;
}
HIL_OPERATOR("aten::adaptive_max_pool2d.out", op_adaptive_max_pool2d);

}  // namespace hil
