// aten::relu.out(self, out) for float, int8 and int32. NaN stays NaN.
#include "kernels/operator.h"
#include "kernels/portable/unary.h"

namespace hil {

namespace {

template <typename T>
Error keep_positive(const Tensor& self, Tensor& out) {
  for (size_t i = 0; i < out.numel; ++i) {
    const T value = self.as<T>()[i];
    out.as<T>()[i] = value < T{0} ? T{0} : value;
  }
  return Error::Ok;
}

}  // namespace

Error op_relu(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  Tensor& out = ctx.tensor(args, 1);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_operands(ctx, self, self, out));
  HIL_TRY(check_same_layout(ctx, self, out));
  switch (out.type) {
    case ScalarType::Float:
      return keep_positive<float>(self, out);
    case ScalarType::Char:
      return keep_positive<int8_t>(self, out);
    case ScalarType::Int:
      return keep_positive<int32_t>(self, out);
    default:
      return unsupported_type(ctx, out.type);
  }
}
HIL_OPERATOR("aten::relu.out", op_relu);

}  // namespace hil
