// dim_order_ops::_to_dim_order_copy.out(self, non_blocking, dim_order?, out): a copy in out's
// element type and dim order.
#include "kernels/arithmetic.h"
#include "kernels/elements.h"
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

namespace {

Error convert(KernelContext& ctx, const Tensor& self, Tensor& out) {
  HIL_TRY(check_tensor(ctx, "self", self, self.type));
  HIL_TRY(check_tensor(ctx, "out", out, out.type));
  const Load load = load_for(self.type);
  const Store store = store_for(out.type);
  if (load == nullptr) return unsupported_type(ctx, self.type);
  if (store == nullptr) return unsupported_type(ctx, out.type);
  const int32_t from = static_cast<int32_t>(element_size(self.type));
  const int32_t to = static_cast<int32_t>(element_size(out.type));
  Walk walk;
  HIL_TRY(broadcast_walk(ctx, self, self, out, &walk));
  if (out.numel == 0) return Error::Ok;
  walk.each_row([&](int32_t o, int32_t a, int32_t, const Walk::Loop& loop) {
    const uint8_t* x = self.data + a * from;
    uint8_t* target = out.data + o * to;
    for (int32_t n = loop.count; n != 0; --n, x += loop.a * from, target += loop.out * to) {
      store(load(x), target);
    }
  });
  return Error::Ok;
}

}  // namespace

Error op_to_dim_order_copy(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  Tensor& out = ctx.tensor(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  return self.type == out.type ? clone(ctx, self, out) : convert(ctx, self, out);
}
HIL_OPERATOR("dim_order_ops::_to_dim_order_copy.out", op_to_dim_order_copy);

}  // namespace hil
