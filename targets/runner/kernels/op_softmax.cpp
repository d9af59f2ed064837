// cortex_m::softmax.out(input, dim, input_zero_point, output_zero_point,
//   input_multiplier, input_shift, diff_min, out)
//
// Definition, in float32: softmax of (input - zero_point) * scale, times 256,
// rounded half to even.
#include <cmath>

#include "kernels/checks.h"
#include "kernels/isa.h"
#include "kernels/layout.h"
#include "kernels/operator.h"
#include "kernels/softmax_helium.h"
#include "kernels/softmax_scalar.h"

namespace hil {

namespace {

constexpr int kInputIntegerBits = 5;  // SOFTMAX_INPUT_INTEGER_BITS of operators.py

}  // namespace

Error op_softmax(KernelContext& ctx, Args args) {
  const Tensor& input = ctx.tensor(args, 0);
  int32_t numbers[5];
  ctx.integers(args, 1, numbers, 5);
  const int32_t dim = numbers[0], zero_point = numbers[1], output_zero = numbers[2];
  const int32_t multiplier = numbers[3], shift = numbers[4];
  Tensor& out = ctx.tensor(args, 7);
  if (!ctx.ok()) return ctx.argument_error();

  HIL_TRY(check_tensor(ctx, "input", input, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Char));
  if (!same_layout(input, out)) {
    return ctx.fail(Error::InvalidArgument, "input and out differ in shape or dim order");
  }
  size_t axis;
  HIL_TRY(check_dim(ctx, dim, input.rank, &axis));
  HIL_TRY(check_range(ctx, "zero point", zero_point, -128, 127));
  HIL_TRY(check_range(ctx, "output zero point", output_zero, kSoftmaxZeroPoint, kSoftmaxZeroPoint));
  HIL_TRY(check_range(ctx, "multiplier", multiplier, 1, INT32_MAX));
  HIL_TRY(check_shift(ctx, "shift", shift));
  if (out.numel == 0) return Error::Ok;

  const double scale =
      std::ldexp(static_cast<double>(multiplier), shift - 31 - (31 - kInputIntegerBits));
  const size_t count = static_cast<size_t>(input.sizes[axis]);
  const Softmax s = {static_cast<float>(scale), zero_point, count,
                     static_cast<size_t>(strides_of(input).step[axis])};
  const size_t block = s.count * s.step;
  for (size_t outer = 0; outer < out.numel; outer += block) {
    for (size_t inner = 0; inner < s.step; ++inner) {
      isa::softmax(s, input.as<int8_t>() + outer + inner, out.as<int8_t>() + outer + inner);
    }
  }
  return Error::Ok;
}
HIL_OPERATOR("cortex_m::softmax.out", op_softmax);

}  // namespace hil
