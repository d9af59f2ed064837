// aten::argmax.out(self, dim?, keepdim, out): the index of the first largest element along a
// dimension, or of the whole tensor when none is named. NaN is larger than everything.
#include "kernels/arithmetic.h"
#include "kernels/elements.h"
#include "kernels/lines.h"
#include "kernels/operator.h"

namespace hil {

namespace {

bool is_nan(const Scalar& x) { return x.is_real && x.real != x.real; }

/// Whether `x` takes the place of `most`.
bool beats(const Scalar& x, const Scalar& most) {
  if (is_nan(most)) return false;
  return x.is_real ? !(x.real <= most.real) : x.whole > most.whole;
}

int64_t first_largest(Load load, const uint8_t* line, size_t count, size_t step) {
  Scalar most = load(line);
  int64_t found = 0;
  for (size_t i = 1; i < count; ++i) {
    const Scalar x = load(line + i * step);
    if (!beats(x, most)) continue;
    most = x;
    found = static_cast<int64_t>(i);
  }
  return found;
}

Error of_all(KernelContext& ctx, const Tensor& self, Load load, Tensor& out) {
  if (out.numel != 1 || self.numel == 0 || !is_contiguous(self)) {
    return ctx.fail(Error::InvalidArgument, "out is not one index of a contiguous self");
  }
  *out.as<int64_t>() = first_largest(load, self.data, self.numel, element_size(self.type));
  return Error::Ok;
}

}  // namespace

Error op_argmax(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const bool whole = args.size() > 1 && args[1]->tag == Tag::None;
  const int32_t dim = whole ? 0 : ctx.int32(args, 1);
  const bool keepdim = ctx.boolean(args, 2);
  Tensor& out = ctx.tensor(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "self", self, self.type));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Long));
  const Load load = load_for(self.type);
  if (load == nullptr) return unsupported_type(ctx, self.type);
  if (whole) return of_all(ctx, self, load, out);
  size_t axis;
  HIL_TRY(check_dim(ctx, dim, self.rank, &axis));
  if (self.sizes[axis] == 0 || !line_shape(self, axis, keepdim ? 1 : -1, out)) {
    return ctx.fail(Error::InvalidArgument, "out is not self without dimension %u",
                    static_cast<unsigned>(axis));
  }
  const int32_t size = static_cast<int32_t>(element_size(self.type));
  const size_t step = static_cast<size_t>(strides_of(self).step[axis] * size);
  each_line(self, axis, out, out, [&](const LineStart& line) {
    out.as<int64_t>()[line.out] = first_largest(load, self.data + line.in * size,
                                                static_cast<size_t>(self.sizes[axis]), step);
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::argmax.out", op_argmax);

}  // namespace hil
