// aten::ge.Tensor_out(self, other, out): out = self >= other, with broadcasting.
#include "kernels/arithmetic.h"
#include "kernels/operators.h"

namespace hil {

namespace {

template <typename T>
void compare(const Walk& walk, const Tensor& self, const Tensor& other, Tensor& out) {
  walk.each_row([&](int32_t o, int32_t i, int32_t j, const Walk::Loop& loop) {
    const T *x = self.as<T>() + i, *y = other.as<T>() + j;
    uint8_t* target = out.data + o;
    for (int32_t n = loop.count; n != 0; --n, target += loop.out, x += loop.a, y += loop.b) {
      *target = *x >= *y;
    }
  });
}

}  // namespace

Error op_ge(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const Tensor& other = ctx.tensor(args, 1);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "self", self, self.type));
  HIL_TRY(check_tensor(ctx, "other", other, self.type));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Bool));
  Walk walk;
  HIL_TRY(broadcast_walk(ctx, self, other, out, &walk));
  if (out.numel == 0) return Error::Ok;
  switch (self.type) {
    case ScalarType::Float:
      compare<float>(walk, self, other, out);
      return Error::Ok;
    case ScalarType::Char:
      compare<int8_t>(walk, self, other, out);
      return Error::Ok;
    case ScalarType::Int:
      compare<int32_t>(walk, self, other, out);
      return Error::Ok;
    default:
      return unsupported_type(ctx, self.type);
  }
}

}  // namespace hil
