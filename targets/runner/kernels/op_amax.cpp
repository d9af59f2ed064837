// aten::amax.out(self, dims, keepdim, out): the largest element along dimensions, all of them
// when none is named. NaN is larger than everything.
#include <limits>

#include "kernels/arithmetic.h"
#include "kernels/operator.h"
#include "kernels/reduction.h"

namespace hil {

namespace {

template <typename T>
void reduce(const Walk& walk, const Tensor& self, Tensor& out) {
  using Limits = std::numeric_limits<T>;
  const T lowest = Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
  for (size_t i = 0; i < out.numel; ++i) out.as<T>()[i] = lowest;
  walk.each_row([&](int32_t o, int32_t a, int32_t, const Walk::Loop& loop) {
    const T* x = self.as<T>() + a;
    T* most = out.as<T>() + o;
    for (int32_t n = loop.count; n != 0; --n, x += loop.a, most += loop.out) {
      if (*x > *most || *x != *x) *most = *x;
    }
  });
}

}  // namespace

Error op_amax(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  int32_t dims[kMaxRank];
  const size_t count = ctx.int_list_upto(args, 1, dims, kMaxRank);
  const bool keepdim = ctx.boolean(args, 2);
  Tensor& out = ctx.tensor(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_operands(ctx, self, self, out));
  uint32_t reduced;
  HIL_TRY(reduced_dims(ctx, dims, count, self.rank, &reduced));
  Walk walk;
  HIL_TRY(reduction_walk(ctx, self, out, reduced, keepdim, &walk));
  switch (self.type) {
    case ScalarType::Float:
      reduce<float>(walk, self, out);
      return Error::Ok;
    case ScalarType::Char:
      reduce<int8_t>(walk, self, out);
      return Error::Ok;
    case ScalarType::Int:
      reduce<int32_t>(walk, self, out);
      return Error::Ok;
    default:
      return unsupported_type(ctx, self.type);
  }
}
HIL_OPERATOR("aten::amax.out", op_amax);

}  // namespace hil
