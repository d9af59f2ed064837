// cortex_m::quantized_add.out(self, zero_point, multiplier, shift, other, zero_point,
//   multiplier, shift, output zero_point, multiplier, shift, act_min, act_max, out)
#include "kernels/elementwise.h"
#include "kernels/isa.h"
#include "kernels/operator.h"
#include "kernels/quantized_add_helium.h"
#include "kernels/quantized_add_scalar.h"

namespace hil {

namespace {

/// The integers of the call in their order.
struct Numbers {
  int32_t self[3], other[3];  // zero point, multiplier, shift
  int32_t output[5];          // zero point, multiplier, shift, bounds
};

Error check_numbers(KernelContext& ctx, const Numbers& n) {
  HIL_TRY(check_range(ctx, "self zero point", n.self[0], INT16_MIN, INT16_MAX));
  HIL_TRY(check_shift(ctx, "self shift", n.self[2]));
  HIL_TRY(check_range(ctx, "other zero point", n.other[0], INT16_MIN, INT16_MAX));
  HIL_TRY(check_shift(ctx, "other shift", n.other[2]));
  HIL_TRY(check_shift(ctx, "output shift", n.output[2]));
  return check_output_bounds(ctx, {n.output[0], n.output[3], n.output[4]});
}

}  // namespace

Error op_quantized_add(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const Tensor& other = ctx.tensor(args, 4);
  Tensor& out = ctx.tensor(args, 13);
  Numbers n;
  ctx.integers(args, 1, n.self, 3);
  ctx.integers(args, 5, n.other, 3);
  ctx.integers(args, 8, n.output, 5);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_numbers(ctx, n));
  Pairs pairs;
  HIL_TRY(pair_up(ctx, self, other, out, &pairs));

  const Addition add = {{n.self[0], n.self[1], n.self[2]},
                        {n.other[0], n.other[1], n.other[2]},
                        {&n.output[1], &n.output[2], 0, n.output[0], n.output[3], n.output[4]}};
  for (size_t r = 0; r < pairs.rows; ++r) {
    const int8_t* x = pairs.a + r * pairs.a_step;
    const int8_t* y = pairs.b + r * pairs.b_step;
    isa::add_row(add, x, y, pairs.out + r * pairs.row, pairs.row);
  }
  return Error::Ok;
}
HIL_OPERATOR("cortex_m::quantized_add.out", op_quantized_add);

}  // namespace hil
