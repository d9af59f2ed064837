#include "kernels/comparison.h"

#include "kernels/arithmetic.h"
#include "kernels/elements.h"

namespace hil {

namespace {

template <typename T>
uint8_t order(T a, T b) {
  return static_cast<uint8_t>((a < b ? kLess : 0) | (a == b ? kEqual : 0) | (a > b ? kGreater : 0));
}

uint8_t order_of(const Scalar& a, const Scalar& b) {
  return a.is_real ? order(a.real, b.real) : order(a.whole, b.whole);
}

}  // namespace

Error compare(KernelContext& ctx, Args args, uint8_t wanted) {
  const Tensor& self = ctx.tensor(args, 0);
  const Tensor& other = ctx.tensor(args, 1);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "self", self, self.type));
  HIL_TRY(check_tensor(ctx, "other", other, self.type));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Bool));
  const Load load = load_for(self.type);
  if (load == nullptr) return unsupported_type(ctx, self.type);
  const int32_t size = static_cast<int32_t>(element_size(self.type));
  Walk walk;
  HIL_TRY(broadcast_walk(ctx, self, other, out, &walk));
  if (out.numel == 0) return Error::Ok;
  walk.each_row([&](int32_t o, int32_t a, int32_t b, const Walk::Loop& loop) {
    for (int32_t i = 0; i < loop.count; ++i) {
      const Scalar x = load(self.data + (a + i * loop.a) * size);
      const Scalar y = load(other.data + (b + i * loop.b) * size);
      out.data[o + i * loop.out] = (order_of(x, y) & wanted) != 0;
    }
  });
  return Error::Ok;
}

}  // namespace hil
