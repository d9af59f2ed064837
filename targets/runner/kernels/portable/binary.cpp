// Arithmetic of two tensors that broadcast, or of a tensor and a number.
#include "kernels/operator.h"
#include "kernels/portable/arithmetic.h"
#include "kernels/portable/operands.h"

namespace hil {

namespace {

/// Which types an operator computes in and takes.
struct Rules {
  TypeSet computed = kAll;  // of the common type
  TypeSet inputs = kAll;
  TypeSet output = kAll;
  bool exact_output = false;  // the common type and no other
  bool in_floats = false;     // integers in double, as pow and fmod
};

constexpr Rules kArithmetic = {};
constexpr Rules kNoBool = {kReals, kAll, kReals, false, false};
constexpr Rules kNoBoolAtAll = {kReals, kReals, kReals, false, false};
constexpr Rules kPowers = {kReals, kAll, kReals, false, true};

constexpr Rules exactly(Rules rules) {
  rules.exact_output = true;
  return rules;
}

ScalarType computed_by(const Rules& rules, ScalarType common) {
  const ScalarType type = computed_in(common);
  return rules.in_floats && type != ScalarType::Float ? ScalarType::Double : type;
}

Error require_types(KernelContext& ctx, const Rules& rules, ScalarType common, Tensors inputs,
                    const Tensor& out) {
  for (const Tensor* t : inputs) HIL_TRY(require_type(ctx, *t, rules.inputs));
  HIL_TRY(require_type(ctx, out, rules.output));
  const bool stored = rules.exact_output ? common == out.type : can_cast(common, out.type);
  HIL_REQUIRE(stored, "out cannot hold the result's element type");
  HIL_REQUIRE(is_in(common, rules.computed), "the operator has no result of this element type");
  return Error::Ok;
}

/// out = each(a, b).
template <typename Each>
Error of_tensors(const Call& call, const Rules& rules, const Tensor& a, const Tensor& b,
                 ScalarType common, Tensor& out, Each each) {
  HIL_TRY(require_types(call.ctx, rules, common, {&a, &b}, out));
  HIL_TRY(require_same_order(call.ctx, {&a, &b, &out}));
  HIL_TRY(give_broadcast_shape(call.ctx, out, {&a, &b}));
  const Tensor* const in[] = {&a, &b};
  map_in(computed_by(rules, common), in, out, each);
  return Error::Ok;
}

/// out = each(a), with a number in each.
template <typename Each>
Error of_tensor(const Call& call, const Rules& rules, const Tensor& a, ScalarType common,
                Tensor& out, Each each) {
  HIL_TRY(require_types(call.ctx, rules, common, {&a}, out));
  HIL_TRY(require_same_order(call.ctx, {&a, &out}));
  HIL_TRY(give_shape_of(call.ctx, out, a));
  const Tensor* const in[] = {&a};
  map_in(computed_by(rules, common), in, out, each);
  return Error::Ok;
}

/// Of tensors, or of a tensor and a number; `each` of two values.
template <typename Each>
Error binary(KernelContext& ctx, Args args, const Rules& rules, Each each) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& other = call.tensor(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  return of_tensors(call, rules, self, other, promoted(self.type, other.type), out, each);
}

template <typename Each>
Error with_number(KernelContext& ctx, Args args, const Rules& rules, Each each) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Number other = call.number(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  const ScalarType common = promoted(self.type, other);
  const Constant b(other, computed_by(rules, common));
  return of_tensor(call, rules, self, common, out, [=](auto a) { return each(a, b.like(a)); });
}

/// Whether alpha may scale a value of the type.
bool fits_alpha(const Number& alpha, ScalarType common) {
  return can_cast(alpha.type(), common) || (is_bool(common) && alpha.tag != Tag::Double);
}

/// Whether alpha is a number of the type that is computed in, as it is.
bool is_alpha(const Number& alpha, ScalarType computed) {
  if (is_bool(computed)) return alpha.tag != Tag::Double;
  if (is_float(computed)) return alpha.tag != Tag::Bool && holds(computed, alpha);
  const int64_t limit = computed == ScalarType::Byte ? 0 : INT64_MIN;
  return alpha.tag == Tag::Int && wrapped(computed, alpha.whole) == alpha.whole &&
         alpha.whole >= limit;
}

/// a + alpha * b, for add; a - alpha * b for sub.
struct Scaled {
  Constant alpha;
  bool less;

  template <typename T>
  T operator()(T a, T b) const {
    const T scaled = Times()(alpha.like(b), b);
    return Plus()(a, less ? Times()(T{-1}, scaled) : scaled);
  }
};

Error add_or_sub(KernelContext& ctx, Args args, bool less) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& other = call.tensor(1);
  const Number alpha = call.number(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  const ScalarType common = promoted(self.type, other.type), computed = computed_in(common);
  const bool fits = less ? alpha.tag != Tag::Bool && can_cast(alpha.type(), common)
                         : fits_alpha(alpha, common) && is_alpha(alpha, computed);
  HIL_REQUIRE(fits, "alpha is not of the element type");
  // A bool next to another type: ExecuTorch's optimised kernel takes it, its portable one does not.
  return of_tensors(call, less ? kNoBool : kArithmetic, self, other, common, out,
                    Scaled{Constant(alpha, computed), less});
}

/// self + alpha * other, self - alpha * other or other - alpha * self, of a number.
enum class Sum { Add, Sub, ReverseSub };

Error add_number(KernelContext& ctx, Args args, Sum sum) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Number other = call.number(1), alpha = call.number(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  const ScalarType common = promoted(self.type, other), computed = computed_in(common);
  const bool adds = sum == Sum::Add;
  const bool fits = adds ? fits_alpha(alpha, common) && is_alpha(alpha, computed)
                         : alpha.tag != Tag::Bool && can_cast(alpha.type(), common);
  HIL_REQUIRE(fits, "alpha is not of the element type");
  const Constant b(other, computed), factor(alpha, computed);
  const Scaled scaled{factor, !adds};
  return of_tensor(
      call, exactly(adds ? kArithmetic : kNoBoolAtAll), self, common, out,
      [=](auto a) { return sum == Sum::ReverseSub ? scaled(b.like(a), a) : scaled(a, b.like(a)); });
}

/// What true division has: the floats' type, or float32.
ScalarType quotient_type(ScalarType a, ScalarType b) {
  if (is_float(a) && is_float(b)) return promoted(a, b);
  return is_float(a) ? a : is_float(b) ? b : ScalarType::Float;
}

constexpr Rules kQuotient = {kFloats, kAll, kFloats, false, false};

struct Quotient {
  template <typename T>
  T operator()(T a, T b) const {
    return a / b;
  }
  int64_t operator()(int64_t, int64_t) const { return 0; }  // never computed in integers
};

/// How a quotient becomes whole, of floats and of integers.
struct WholeQuotient {
  bool towards_zero;
  bool* divided_by_zero;

  int64_t operator()(int64_t a, int64_t b) const {
    if (b == 0) {
      *divided_by_zero = true;
      return 0;
    }
    return towards_zero ? divided(a, b) : floor_divided(a, b);
  }
  template <typename T>
  T operator()(T a, T b) const {
    return towards_zero ? std::trunc(a / b) : floor_divided(a, b);
  }
};

struct Remainder {
  bool* divided_by_zero;

  int64_t operator()(int64_t a, int64_t b) const {
    if (b == 0) {
      *divided_by_zero = true;
      return 0;
    }
    return signed_remainder(a, b);
  }
  template <typename T>
  T operator()(T a, T b) const {
    return signed_remainder(a, b);
  }
};

constexpr char kByZero[] = "an integer is divided by zero";

/// An integer result whose divisor is the number 0.
bool is_by_zero(ScalarType type, const Number& number) {
  return !is_float(promoted(type, number)) && number.as<double>() == 0.0;
}

/// `each`, made of a flag, where integers may be divided by zero.
template <typename Each>
Error dividing(KernelContext& ctx, Args args, Each make) {
  bool by_zero = false;
  HIL_TRY(binary(ctx, args, kNoBool, make(&by_zero)));
  HIL_REQUIRE(!by_zero, kByZero);
  return Error::Ok;
}

template <typename Each>
Error dividing_by_number(KernelContext& ctx, Args args, const Rules& rules, Each each) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Number other = call.number(1);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(!is_by_zero(self.type, other), kByZero);
  return with_number(ctx, args, rules, each);
}

struct Power {
  float operator()(float a, float b) const { return std::pow(a, b); }
  double operator()(double a, double b) const { return std::pow(a, b); }
  int64_t operator()(int64_t, int64_t) const { return 0; }  // never computed in integers
};

struct Modulus {
  float operator()(float a, float b) const { return std::fmod(a, b); }
  double operator()(double a, double b) const { return std::fmod(a, b); }
  int64_t operator()(int64_t, int64_t) const { return 0; }  // never computed in integers
};

struct Angle {
  float operator()(float a, float b) const { return std::atan2(a, b); }
  double operator()(double a, double b) const { return std::atan2(a, b); }
  int64_t operator()(int64_t, int64_t) const { return 0; }  // never computed in integers
};

/// A kernel's arguments without the one at `i`.
struct Shorter {
  Value* values[kMaxRank];
  size_t count = 0;

  Shorter(Args args, size_t i) {
    for (size_t k = 0; k < args.size() && count < kMaxRank; ++k) {
      if (k != i) values[count++] = args[k];
    }
  }
  Args args() const { return Args(values, count); }
};

/// The rounding mode, an argument before out: -1 for another text, 0 for none.
enum class Mode { Unknown, None, Trunc, Floor };

Mode mode_of(const Call& call, size_t i) {
  if (call.is_none(i)) return Mode::None;
  if (call.is_text(i, "trunc")) return Mode::Trunc;
  return call.is_text(i, "floor") ? Mode::Floor : Mode::Unknown;
}

constexpr char kModes[] = "the rounding mode is neither trunc nor floor";

}  // namespace

Error portable_add(KernelContext& ctx, Args args) { return add_or_sub(ctx, args, false); }
HIL_OPERATOR("aten::add.out", portable_add);

Error portable_sub(KernelContext& ctx, Args args) { return add_or_sub(ctx, args, true); }
HIL_OPERATOR("aten::sub.out", portable_sub);

Error portable_add_scalar(KernelContext& ctx, Args args) { return add_number(ctx, args, Sum::Add); }
HIL_OPERATOR("aten::add.Scalar_out", portable_add_scalar);

Error portable_sub_scalar(KernelContext& ctx, Args args) { return add_number(ctx, args, Sum::Sub); }
HIL_OPERATOR("aten::sub.Scalar_out", portable_sub_scalar);

Error portable_rsub_scalar(KernelContext& ctx, Args args) {
  return add_number(ctx, args, Sum::ReverseSub);
}
HIL_OPERATOR("aten::rsub.Scalar_out", portable_rsub_scalar);

Error portable_mul(KernelContext& ctx, Args args) {
  return binary(ctx, args, kArithmetic, Times());
}
HIL_OPERATOR("aten::mul.out", portable_mul);

Error portable_mul_scalar(KernelContext& ctx, Args args) {
  return with_number(ctx, args, exactly(kArithmetic), Times());
}
HIL_OPERATOR("aten::mul.Scalar_out", portable_mul_scalar);

Error portable_div(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& other = call.tensor(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  return of_tensors(call, kQuotient, self, other, quotient_type(self.type, other.type), out,
                    Quotient());
}
HIL_OPERATOR("aten::div.out", portable_div);

Error portable_div_scalar(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Number other = call.number(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  const ScalarType common = is_float(self.type) ? self.type : ScalarType::Float;
  const Constant b(other, computed_in(common));
  return of_tensor(call, exactly(kQuotient), self, common, out,
                   [=](auto a) { return Quotient()(a, b.like(a)); });
}
HIL_OPERATOR("aten::div.Scalar_out", portable_div_scalar);

Error portable_div_mode(KernelContext& ctx, Args args) {
  const Mode mode = mode_of(Call{ctx, args}, 2);
  HIL_REQUIRE(mode != Mode::Unknown, kModes);
  const Shorter rest(args, 2);
  if (mode == Mode::None) return portable_div(ctx, rest.args());
  return dividing(ctx, rest.args(), [=](bool* by_zero) {
    return WholeQuotient{mode == Mode::Trunc, by_zero};
  });
}
HIL_OPERATOR("aten::div.out_mode", portable_div_mode);

Error portable_div_scalar_mode(KernelContext& ctx, Args args) {
  const Mode mode = mode_of(Call{ctx, args}, 2);
  HIL_REQUIRE(mode != Mode::Unknown, kModes);
  const Shorter rest(args, 2);
  if (mode == Mode::None) return portable_div_scalar(ctx, rest.args());
  bool by_zero = false;
  HIL_TRY(
      dividing_by_number(ctx, rest.args(), kNoBool, WholeQuotient{mode == Mode::Trunc, &by_zero}));
  HIL_REQUIRE(!by_zero, kByZero);
  return Error::Ok;
}
HIL_OPERATOR("aten::div.Scalar_mode_out", portable_div_scalar_mode);

Error portable_floor_divide(KernelContext& ctx, Args args) {
  return dividing(ctx, args, [](bool* by_zero) { return WholeQuotient{false, by_zero}; });
}
HIL_OPERATOR("aten::floor_divide.out", portable_floor_divide);

Error portable_remainder(KernelContext& ctx, Args args) {
  return dividing(ctx, args, [](bool* by_zero) { return Remainder{by_zero}; });
}
HIL_OPERATOR("aten::remainder.Tensor_out", portable_remainder);

Error portable_remainder_scalar(KernelContext& ctx, Args args) {
  bool by_zero = false;
  HIL_TRY(dividing_by_number(ctx, args, kNoBool, Remainder{&by_zero}));
  HIL_REQUIRE(!by_zero, kByZero);
  return Error::Ok;
}
HIL_OPERATOR("aten::remainder.Scalar_out", portable_remainder_scalar);

Error portable_fmod(KernelContext& ctx, Args args) { return binary(ctx, args, kPowers, Modulus()); }
HIL_OPERATOR("aten::fmod.Tensor_out", portable_fmod);

Error portable_fmod_scalar(KernelContext& ctx, Args args) {
  return dividing_by_number(ctx, args, kPowers, Modulus());
}
HIL_OPERATOR("aten::fmod.Scalar_out", portable_fmod_scalar);

Error portable_pow(KernelContext& ctx, Args args) { return binary(ctx, args, kPowers, Power()); }
HIL_OPERATOR("aten::pow.Tensor_Tensor_out", portable_pow);

Error portable_pow_scalar(KernelContext& ctx, Args args) {
  return with_number(ctx, args, kPowers, Power());
}
HIL_OPERATOR("aten::pow.Tensor_Scalar_out", portable_pow_scalar);

Error portable_pow_of_scalar(KernelContext& ctx, Args args) {
  HIL_REQUIRE(args.size() >= 3, "there are not three arguments");
  Value* const exchanged[] = {args[1], args[0], args[2]};
  return with_number(ctx, Args(exchanged, 3), kPowers,
                     [](auto b, auto a) { return Power()(a, b); });
}
HIL_OPERATOR("aten::pow.Scalar_out", portable_pow_of_scalar);

Error portable_maximum(KernelContext& ctx, Args args) {
  return binary(ctx, args, kArithmetic, Larger());
}
HIL_OPERATOR("aten::maximum.out", portable_maximum);

Error portable_minimum(KernelContext& ctx, Args args) {
  return binary(ctx, args, kArithmetic, Smaller());
}
HIL_OPERATOR("aten::minimum.out", portable_minimum);

Error portable_atan2(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& other = call.tensor(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  return of_tensors(call, kQuotient, self, other, quotient_type(self.type, other.type), out,
                    Angle());
}
HIL_OPERATOR("aten::atan2.out", portable_atan2);

}  // namespace hil
