// Operators that take one of several values for each element, and what is made of such.
#include "kernels/operator.h"
#include "kernels/portable/arithmetic.h"
#include "kernels/portable/operands.h"

namespace hil {

namespace {

/// The bounds of a clamp, either of which may be absent.
struct Bounds {
  bool has_low, has_high;

  template <typename T>
  T operator()(T x, T low, T high) const {
    if (has_low) x = Larger()(x, low);
    return has_high ? Smaller()(x, high) : x;
  }
};

}  // namespace

Error portable_clamp(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Number low = call.number_or_none(1), high = call.number_or_none(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(low.present() || high.present(), "there is neither a lower nor an upper bound");
  HIL_TRY(require_type(ctx, self, kAll));
  ScalarType common = self.type;
  for (const Number* bound : {&low, &high}) {
    if (bound->present()) common = promoted(common, *bound);
  }
  HIL_REQUIRE(common == out.type, "out is not of the result's element type");
  for (const Number* bound : {&low, &high}) {
    // Integers are compared as integers: a negative bound of unsigned ones does not wrap.
    const bool fits = is_whole(common)
                          ? wrapped(common, bound->as<int64_t>()) == bound->as<int64_t>()
                          : holds(common, *bound);
    HIL_REQUIRE(!bound->present() || fits, "a bound is out of the element type's range");
  }
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(give_shape_of(ctx, out, self));
  const ScalarType computed = computed_in(common);
  const Constant from(low, computed), to(high, computed);
  const Bounds bounds{low.present(), high.present()};
  const Tensor* const in[] = {&self};
  map_in(computed, in, out, [=](auto x) { return bounds(x, from.like(x), to.like(x)); });
  return Error::Ok;
}
HIL_OPERATOR("aten::clamp.out", portable_clamp);

Error portable_clamp_tensor(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor* low = call.tensor_or_none(1);
  const Tensor* high = call.tensor_or_none(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  const Bounds bounds{low != nullptr, high != nullptr};
  HIL_REQUIRE(bounds.has_low || bounds.has_high, "there is neither a lower nor an upper bound");
  if (low == nullptr) low = &self;
  if (high == nullptr) high = &self;
  for (const Tensor* t : {&self, low, high, static_cast<const Tensor*>(&out)}) {
    HIL_TRY(require_type(ctx, *t, kAll));
  }
  const ScalarType common = promoted(promoted(self.type, low->type), high->type);
  HIL_REQUIRE(can_cast(common, out.type), "out cannot hold the result's element type");
  HIL_TRY(require_same_order(ctx, {&self, low, high, &out}));
  HIL_TRY(give_broadcast_shape(ctx, out, {&self, low, high}));
  const Tensor* const in[] = {&self, low, high};
  map_in(computed_in(common), in, out, bounds);
  return Error::Ok;
}
HIL_OPERATOR("aten::clamp.Tensor_out", portable_clamp_tensor);

Error portable_where(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& condition = call.tensor(0);
  const Tensor& self = call.tensor(1);
  const Tensor& other = call.tensor(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, condition, kBoolOrByte));
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, other, kAll));
  const ScalarType common = promoted(self.type, other.type);
  HIL_REQUIRE(common == out.type, "out is not of the result's element type");
  HIL_TRY(require_same_order(ctx, {&condition, &self, &other, &out}));
  HIL_TRY(give_broadcast_shape(ctx, out, {&self, &other, &condition}));
  const Tensor* const in[] = {&self, &other, &condition};
  map_in(computed_in(common), in, out, [](auto a, auto b, auto c) { return c != 0 ? a : b; });
  return Error::Ok;
}
HIL_OPERATOR("aten::where.self_out", portable_where);

Error portable_masked_fill(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& mask = call.tensor(1);
  const Number value = call.number(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_type(ctx, mask, kBool));
  HIL_TRY(give_broadcast_shape(ctx, out, {&self, &mask}));
  HIL_TRY(require_same_order(ctx, {&self, &mask, &out}));
  const ScalarType computed = computed_in(self.type);
  const Constant filled(value, computed);
  const Tensor* const in[] = {&self, &mask};
  map_in(computed, in, out,
         [=](auto x, auto is_masked) { return is_masked != 0 ? filled.like(x) : x; });
  return Error::Ok;
}
HIL_OPERATOR("aten::masked_fill.Scalar_out", portable_masked_fill);

Error portable_native_dropout(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const double probability = call.real(1);
  const bool trains = call.is_none(2) || call.boolean(2);
  Tensor& out = call.tensor(3);
  Tensor& mask = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&input, &out}));
  HIL_TRY(require_same_order(ctx, {&input, &out, &mask}));
  HIL_TRY(give_shape_of(ctx, out, input));
  HIL_TRY(give_shape_of(ctx, mask, input));
  HIL_TRY(require_type(ctx, mask, kBool));
  HIL_TRY(require_type(ctx, input, kAll));
  HIL_REQUIRE(probability >= 0.0 && probability <= 1.0, "the probability is not within 0 and 1");
  if (trains && probability != 0.0) {
    return ctx.fail(Error::NotSupported, "training takes random numbers, which no runner repeats");
  }
  for (size_t i = 0; i < input.nbytes; ++i) out.data[i] = input.data[i];
  for (size_t i = 0; i < mask.numel; ++i) mask.data[i] = 1;
  return Error::Ok;
}
HIL_OPERATOR("aten::native_dropout.out", portable_native_dropout);

}  // namespace hil
