// aten::mean.out(self, dims?, keepdim, dtype?, out) for contiguous floats. Sums go in order, in
// float, as those of ExecuTorch's portable kernel do.
#include "kernels/arithmetic.h"
#include "kernels/operator.h"
#include "kernels/reduction.h"

namespace hil {

namespace {

void average(const Walk& walk, const Tensor& self, Tensor& out) {
  float* results = out.as<float>();
  for (size_t i = 0; i < out.numel; ++i) results[i] = 0.0f;
  walk.each_row([&](int32_t o, int32_t a, int32_t, const Walk::Loop& loop) {
    const float* x = self.as<float>() + a;
    for (int32_t i = 0; i < loop.count; ++i) results[o + i * loop.out] += x[i * loop.a];
  });
  const size_t count = out.numel == 0 ? 1 : self.numel / out.numel;
  for (size_t i = 0; i < out.numel; ++i) results[i] /= static_cast<float>(count);
}

}  // namespace

Error op_mean(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  int32_t dims[kMaxRank];
  const bool all = args.size() > 1 && args[1]->tag == Tag::None;
  const size_t count = all ? 0 : ctx.int_list_upto(args, 1, dims, kMaxRank);
  const bool keepdim = ctx.boolean(args, 2);
  Tensor& out = ctx.tensor(args, 4);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_operands(ctx, self, self, out));
  if (self.type != ScalarType::Float) return unsupported_type(ctx, self.type);
  if (!is_contiguous(self) || !is_contiguous(out)) {
    return ctx.fail(Error::InvalidArgument, "a tensor is not contiguous");
  }
  uint32_t reduced;
  HIL_TRY(reduced_dims(ctx, dims, count, self.rank, &reduced));
  Walk walk;
  HIL_TRY(reduction_walk(ctx, self, out, reduced, keepdim, &walk));
  average(walk, self, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::mean.out", op_mean);

}  // namespace hil
