// aten::eq.Tensor_out(self, other, out) with broadcasting, and aten::eq.Scalar_out(self, other,
// out): the result is bool.
#include "kernels/comparison.h"
#include "kernels/elements.h"
#include "kernels/operator.h"
#include "kernels/portable/unary.h"

namespace hil {

namespace {

/// Compared in the wider of both types, as C++ does.
bool equal(const Scalar& a, const Scalar& b) {
  if (!a.is_real && !b.is_real) return a.whole == b.whole;
  const auto real = [](const Scalar& s) {
    return s.is_real ? s.real : static_cast<double>(s.whole);
  };
  return real(a) == real(b);
}

}  // namespace

Error op_eq(KernelContext& ctx, Args args) { return compare(ctx, args, kEqual); }
HIL_OPERATOR("aten::eq.Tensor_out", op_eq);

Error op_eq_scalar(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const bool whole = args.size() > 1 && args[1]->tag == Tag::Int;
  const double number = ctx.number(args, 1);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "self", self, self.type));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Bool));
  HIL_TRY(check_same_layout(ctx, self, out));
  const Load load = load_for(self.type);
  if (load == nullptr) return unsupported_type(ctx, self.type);
  Scalar other = {!whole, number, whole ? args[1]->as_int : 0};
  // A number has the precision of the tensor that it is compared with.
  if (self.type == ScalarType::Float && !whole) other.real = static_cast<float>(number);
  for (size_t i = 0; i < out.numel; ++i) {
    out.data[i] = equal(load(self.data + i * element_size(self.type)), other);
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::eq.Scalar_out", op_eq_scalar);

}  // namespace hil
