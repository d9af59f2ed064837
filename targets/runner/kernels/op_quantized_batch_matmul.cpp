// cortex_m::quantized_batch_matmul.out(lhs, lhs offset, rhs_transposed, rhs offset,
//   output zero_point, multiplier, shift, scratch, out)
//
// The definition accumulates in float32, which is exact up to 2^24; here it is always exact.
#include "kernels/checks.h"
#include "kernels/matmul.h"
#include "kernels/operator.h"
#include "kernels/scratch_check.h"
#include "kernels/scratch_sizes.h"

namespace hil {

namespace {

Error check_matrices(KernelContext& ctx, const Tensor& lhs, const Tensor& rhs, const Tensor& out) {
  HIL_TRY(check_tensor(ctx, "lhs", lhs, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "rhs_transposed", rhs, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Char));
  const bool ranks = lhs.rank == 3 && rhs.rank == 3 && out.rank == 3;
  if (!ranks || !is_contiguous(lhs) || !is_contiguous(rhs) || !is_contiguous(out)) {
    return ctx.fail(Error::InvalidArgument, "an operand is not a contiguous batch of matrices");
  }
  const bool fits = rhs.sizes[0] == lhs.sizes[0] && rhs.sizes[2] == lhs.sizes[2] &&
                    out.sizes[0] == lhs.sizes[0] && out.sizes[1] == lhs.sizes[1] &&
                    out.sizes[2] == rhs.sizes[1];
  if (fits) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "the shapes of lhs, rhs_transposed and out do not match");
}

}  // namespace

Error op_quantized_batch_matmul(KernelContext& ctx, Args args) {
  const Tensor& lhs = ctx.tensor(args, 0);
  const int32_t lhs_offset = ctx.int32(args, 1);
  const Tensor& rhs = ctx.tensor(args, 2);
  int32_t numbers[4];  // rhs offset, output zero point, multiplier, shift
  ctx.integers(args, 3, numbers, 4);
  const Tensor& scratch = ctx.tensor(args, 7);
  Tensor& out = ctx.tensor(args, 8);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_matrices(ctx, lhs, rhs, out));
  HIL_TRY(check_range(ctx, "lhs offset", lhs_offset, INT16_MIN, INT16_MAX));
  HIL_TRY(check_range(ctx, "rhs offset", numbers[0], INT16_MIN, INT16_MAX));
  HIL_TRY(check_range(ctx, "output zero point", numbers[1], INT16_MIN, INT16_MAX));
  HIL_TRY(check_shift(ctx, "output shift", numbers[3]));
  const size_t batches = static_cast<size_t>(lhs.sizes[0]);
  const size_t rows = static_cast<size_t>(lhs.sizes[1]), inner = static_cast<size_t>(lhs.sizes[2]);
  const size_t columns = static_cast<size_t>(rhs.sizes[1]);
  HIL_TRY(
      check_scratch(ctx, scratch, [&](ScratchIsa isa) { return matmul_scratch(isa, columns); }));
  if (out.numel == 0) return Error::Ok;

  const int32_t m = numbers[2], s = numbers[3];
  const int32_t multipliers[4] = {m, m, m, m}, shifts[4] = {s, s, s, s};
  const OutputStage stage = {multipliers, shifts, 0, numbers[1], INT8_MIN, INT8_MAX};
  for (size_t b = 0; b < batches; ++b) {
    multiply({rows, inner, columns, lhs.as<int8_t>() + b * rows * inner,
              rhs.as<int8_t>() + b * columns * inner, nullptr, lhs_offset, numbers[0], stage,
              out.as<int8_t>() + b * rows * columns});
  }
  return Error::Ok;
}
HIL_OPERATOR("cortex_m::quantized_batch_matmul.out", op_quantized_batch_matmul);

}  // namespace hil
