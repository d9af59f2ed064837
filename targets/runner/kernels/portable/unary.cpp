// Operators of one tensor, element by element.
#include <cmath>

#include "kernels/operator.h"
#include "kernels/portable/curves.h"
#include "kernels/portable/operands.h"

namespace hil {

namespace {

Error require_unary(KernelContext& ctx, const Tensor& self, const Tensor& out) {
  HIL_TRY(give_shape_of(ctx, out, self));
  return require_same_order(ctx, {&self, &out});
}

/// A function of floats. Integers and bools are computed in float, and what comes out is a float.
Error curve(KernelContext& ctx, Args args, float (*single)(float), double (*twice)(double)) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  Tensor& out = call.tensor(1);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, out, kFloats));
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_unary(ctx, self, out));
  const Tensor* const in[] = {&self};
  if (self.type == ScalarType::Double) {
    map_as<double>(ScalarType::Double, in, out, twice);
  } else if (!map_floats(in, out, single)) {
    map_as<float>(ScalarType::Float, in, out, single);
  }
  return Error::Ok;
}

/// A function that leaves the type as it is. `computed`: what integers are computed in.
template <typename Each>
Error same_type(KernelContext& ctx, Args args, TypeSet allowed, Each each) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  Tensor& out = call.tensor(1);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_type(ctx, self, allowed));
  HIL_TRY(require_unary(ctx, self, out));
  const Tensor* const in[] = {&self};
  map_in(computed_in(self.type), in, out, each);
  return Error::Ok;
}

/// ceil, floor and trunc: ExecuTorch takes integers through float, which drops bits of large ones.
Error rounding(KernelContext& ctx, Args args, float (*single)(float), double (*twice)(double)) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  Tensor& out = call.tensor(1);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_type(ctx, self, kReals));
  HIL_TRY(require_unary(ctx, self, out));
  const Tensor* const in[] = {&self};
  if (self.type == ScalarType::Double) {
    map_as<double>(ScalarType::Double, in, out, twice);
  } else if (!map_floats(in, out, single)) {
    map_as<float>(ScalarType::Float, in, out, single);
  }
  return Error::Ok;
}

Error truth_of(KernelContext& ctx, Args args, bool (*is_so)(double)) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  Tensor& out = call.tensor(1);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, out, kBool));
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_unary(ctx, self, out));
  const Tensor* const in[] = {&self};
  map_as<double>(ScalarType::Double, in, out,
                 [=](double value) { return is_so(value) ? 1.0 : 0.0; });
  return Error::Ok;
}

bool is_infinite(double value) { return std::isinf(value); }
bool is_nan(double value) { return std::isnan(value); }

template <typename T>
T reciprocal(T x) {
  return static_cast<T>(1.0 / static_cast<double>(x));
}

template <typename T>
T reciprocal_root(T x) {
  return static_cast<T>(1.0 / static_cast<double>(std::sqrt(x)));
}

template <typename T>
T half_to_even(T x) {
  if (x - std::floor(x) != T{0.5}) return std::round(x);
  return static_cast<T>(static_cast<double>(std::round(x * T{0.5})) * 2.0);
}

struct Magnitude {
  int64_t operator()(int64_t x) const { return x < 0 ? opposite(x) : x; }
  template <typename T>
  T operator()(T x) const {
    return x < 0 ? -x : x;
  }
  static int64_t opposite(int64_t x) {
    return static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(x));
  }
};

struct Opposite {
  int64_t operator()(int64_t x) const { return Magnitude::opposite(x); }
  template <typename T>
  T operator()(T x) const {
    return -x;
  }
};

struct Rounded {
  int64_t operator()(int64_t x) const { return x; }
  template <typename T>
  T operator()(T x) const {
    return half_to_even(x);
  }
};

struct Sign {
  template <typename T>
  T operator()(T x) const {
    return x != x ? x : static_cast<T>((x > 0) - (x < 0));
  }
};

struct Positive {
  template <typename T>
  T operator()(T x) const {
    return x != x || x >= 0 ? x : T{0};
  }
};

}  // namespace

// sigmoid and tanh of floats have the same bits in every build (curves.h); the others are those of
// the C library that a runner is linked with.
#define HIL_CURVE(NAME, SINGLE, TWICE) \
  Error portable_##NAME(KernelContext& ctx, Args args) { return curve(ctx, args, SINGLE, TWICE); }
#define HIL_LIBRARY_CURVE(NAME) HIL_CURVE(NAME, std::NAME, std::NAME)

HIL_LIBRARY_CURVE(acos)
HIL_LIBRARY_CURVE(acosh)
HIL_LIBRARY_CURVE(asin)
HIL_LIBRARY_CURVE(asinh)
HIL_LIBRARY_CURVE(atan)
HIL_LIBRARY_CURVE(atanh)
HIL_LIBRARY_CURVE(cos)
HIL_LIBRARY_CURVE(cosh)
HIL_LIBRARY_CURVE(erf)
HIL_LIBRARY_CURVE(exp)
HIL_LIBRARY_CURVE(expm1)
HIL_LIBRARY_CURVE(log)
HIL_LIBRARY_CURVE(log10)
HIL_LIBRARY_CURVE(log1p)
HIL_LIBRARY_CURVE(log2)
HIL_LIBRARY_CURVE(sin)
HIL_LIBRARY_CURVE(sinh)
HIL_LIBRARY_CURVE(sqrt)
HIL_LIBRARY_CURVE(tan)
HIL_CURVE(tanh, hyperbolic_tangent, std::tanh)
HIL_CURVE(reciprocal, reciprocal, reciprocal)
HIL_CURVE(rsqrt, reciprocal_root, reciprocal_root)
HIL_CURVE(sigmoid, sigmoid, [](double x) { return 1.0 / (1.0 + std::exp(-x)); })

HIL_OPERATOR("aten::acos.out", portable_acos);
HIL_OPERATOR("aten::acosh.out", portable_acosh);
HIL_OPERATOR("aten::asin.out", portable_asin);
HIL_OPERATOR("aten::asinh.out", portable_asinh);
HIL_OPERATOR("aten::atan.out", portable_atan);
HIL_OPERATOR("aten::atanh.out", portable_atanh);
HIL_OPERATOR("aten::cos.out", portable_cos);
HIL_OPERATOR("aten::cosh.out", portable_cosh);
HIL_OPERATOR("aten::erf.out", portable_erf);
HIL_OPERATOR("aten::exp.out", portable_exp);
HIL_OPERATOR("aten::expm1.out", portable_expm1);
HIL_OPERATOR("aten::log.out", portable_log);
HIL_OPERATOR("aten::log10.out", portable_log10);
HIL_OPERATOR("aten::log1p.out", portable_log1p);
HIL_OPERATOR("aten::log2.out", portable_log2);
HIL_OPERATOR("aten::sin.out", portable_sin);
HIL_OPERATOR("aten::sinh.out", portable_sinh);
HIL_OPERATOR("aten::sqrt.out", portable_sqrt);
HIL_OPERATOR("aten::tan.out", portable_tan);
HIL_OPERATOR("aten::tanh.out", portable_tanh);
HIL_OPERATOR("aten::reciprocal.out", portable_reciprocal);
HIL_OPERATOR("aten::rsqrt.out", portable_rsqrt);
HIL_OPERATOR("aten::sigmoid.out", portable_sigmoid);

Error portable_ceil(KernelContext& ctx, Args args) {
  return rounding(ctx, args, std::ceil, std::ceil);
}
HIL_OPERATOR("aten::ceil.out", portable_ceil);

Error portable_floor(KernelContext& ctx, Args args) {
  return rounding(ctx, args, std::floor, std::floor);
}
HIL_OPERATOR("aten::floor.out", portable_floor);

Error portable_trunc(KernelContext& ctx, Args args) {
  return rounding(ctx, args, std::trunc, std::trunc);
}
HIL_OPERATOR("aten::trunc.out", portable_trunc);

Error portable_abs(KernelContext& ctx, Args args) {
  return same_type(ctx, args, kReals, Magnitude());
}
HIL_OPERATOR("aten::abs.out", portable_abs);

Error portable_neg(KernelContext& ctx, Args args) {
  return same_type(ctx, args, kReals, Opposite());
}
HIL_OPERATOR("aten::neg.out", portable_neg);

Error portable_round(KernelContext& ctx, Args args) {
  return same_type(ctx, args, kReals, Rounded());
}
HIL_OPERATOR("aten::round.out", portable_round);

Error portable_sign(KernelContext& ctx, Args args) { return same_type(ctx, args, kAll, Sign()); }
HIL_OPERATOR("aten::sign.out", portable_sign);

Error portable_relu(KernelContext& ctx, Args args) {
  return same_type(ctx, args, kReals, Positive());
}
HIL_OPERATOR("aten::relu.out", portable_relu);

Error portable_bitwise_not(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const bool truth = is_bool(call.tensor(0).type);
  return same_type(ctx, args, kWholes | kBool, [=](auto x) {
    const int64_t whole = static_cast<int64_t>(x);
    return static_cast<decltype(x)>(truth ? 1 - whole : ~whole);
  });
}
HIL_OPERATOR("aten::bitwise_not.out", portable_bitwise_not);

Error portable_isinf(KernelContext& ctx, Args args) { return truth_of(ctx, args, is_infinite); }
HIL_OPERATOR("aten::isinf.out", portable_isinf);

Error portable_isnan(KernelContext& ctx, Args args) { return truth_of(ctx, args, is_nan); }
HIL_OPERATOR("aten::isnan.out", portable_isnan);

Error portable_logical_not(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  Tensor& out = call.tensor(1);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, out, kAll));
  HIL_TRY(require_unary(ctx, self, out));
  const Tensor* const in[] = {&self};
  map_as<bool>(ScalarType::Bool, in, out, [](bool x) { return !x; });
  return Error::Ok;
}
HIL_OPERATOR("aten::logical_not.out", portable_logical_not);

}  // namespace hil
