#include "kernels/extremum.h"

#include "kernels/broadcast.h"

namespace hil {

Error extremum(KernelContext& ctx, Args args, ChooseRow choose) {
  const Tensor& self = ctx.tensor(args, 0);
  const Tensor& other = ctx.tensor(args, 1);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "self", self, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "other", other, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Char));
  Walk walk;
  HIL_TRY(broadcast_walk(ctx, self, other, out, &walk));
  if (out.numel == 0) return Error::Ok;
  walk.each_row([&](int32_t o, int32_t a, int32_t b, const Walk::Loop& loop) {
    choose(self.as<int8_t>() + a, other.as<int8_t>() + b, out.as<int8_t>() + o, loop);
  });
  return Error::Ok;
}

}  // namespace hil
