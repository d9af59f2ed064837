// aten::clamp.out(self, min?, max?, out). The upper bound wins when the bounds cross, and NaN
// stays NaN.
#include "kernels/arithmetic.h"
#include "kernels/operator.h"

namespace hil {

namespace {

struct Bound {
  bool given;
  double value;
};

Bound read_bound(KernelContext& ctx, Args args, size_t index) {
  if (index < args.size() && args[index]->tag == Tag::None) return {false, 0.0};
  return {true, ctx.number(args, index)};
}

/// torch refuses bounds that the type cannot hold.
Error check_bound(KernelContext& ctx, const Bound& bound, double low, double high) {
  if (!bound.given || (bound.value >= low && bound.value <= high)) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "a bound does not fit the element type");
}

template <typename T>
void clamp_all(const Walk& walk, const Tensor& self, Tensor& out, Bound low, Bound high) {
  for_each_pair<T>(walk, self, self, out, [&](T value, T) {
    const double given = static_cast<double>(value);
    const double raised = low.given && given < low.value ? low.value : given;
    return static_cast<T>(high.given && raised > high.value ? high.value : raised);
  });
}

}  // namespace

Error op_clamp(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const Bound low = read_bound(ctx, args, 1), high = read_bound(ctx, args, 2);
  Tensor& out = ctx.tensor(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_operands(ctx, self, self, out));
  if (!same_shape(self, out)) {
    return ctx.fail(Error::InvalidArgument, "self and out differ in shape");
  }
  Walk walk;
  HIL_TRY(broadcast_walk(ctx, self, self, out, &walk));
  switch (out.type) {
    case ScalarType::Float:
      clamp_all<float>(walk, self, out, low, high);
      return Error::Ok;
    case ScalarType::Char:
      HIL_TRY(check_bound(ctx, low, INT8_MIN, INT8_MAX));
      HIL_TRY(check_bound(ctx, high, INT8_MIN, INT8_MAX));
      clamp_all<int8_t>(walk, self, out, low, high);
      return Error::Ok;
    case ScalarType::Int:
      HIL_TRY(check_bound(ctx, low, INT32_MIN, INT32_MAX));
      HIL_TRY(check_bound(ctx, high, INT32_MIN, INT32_MAX));
      clamp_all<int32_t>(walk, self, out, low, high);
      return Error::Ok;
    default:
      return unsupported_type(ctx, out.type);
  }
}
HIL_OPERATOR("aten::clamp.out", op_clamp);

}  // namespace hil
