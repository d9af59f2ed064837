// Activation functions: elu, gelu, glu, hardtanh, leaky_relu, logit.
#include <cmath>

#include "kernels/operator.h"
#include "kernels/portable/arithmetic.h"
#include "kernels/portable/curves.h"
#include "kernels/portable/operands.h"

namespace hil {

namespace {

/// A float as an element of the type keeps it.
float kept(ScalarType type, float value) {
  if (type == ScalarType::Half) return from_half(to_half(value));
  return type == ScalarType::BFloat16 ? from_bfloat16(to_bfloat16(value)) : value;
}

Error require_activation(KernelContext& ctx, const Tensor& self, const Tensor& out,
                         TypeSet allowed) {
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_type(ctx, self, allowed));
  HIL_TRY(give_shape_of(ctx, out, self));
  return require_same_order(ctx, {&self, &out});
}

float less_one(float x) { return x > 0.0f ? std::expm1(x) : exponential_less_one(x); }
double less_one(double x) { return std::expm1(x); }

/// The tanh form of gelu, in ExecuTorch's order of operations.
template <typename T>
T gelu_by_tanh(T x) {
  constexpr double kRootOf2 = 1.41421356237309504880, kTwoByRootOfPi = 1.12837916709551257390;
  const T beta = static_cast<T>(kRootOf2 * kTwoByRootOfPi * 0.5);
  const T kappa = static_cast<T>(0.044715f);
  const T inner = beta * (x + kappa * (x * x * x));
  return static_cast<T>(0.5 * static_cast<double>(x) *
                        (1.0 + static_cast<double>(std::tanh(inner))));
}

template <typename T>
T gelu_by_erf(T x) {
  constexpr double kRootOfHalf = 0.70710678118654752440;
  const double twice = static_cast<double>(x);
  return static_cast<T>(0.5 * twice * (1.0 + std::erf(twice * kRootOfHalf)));
}

template <typename T>
T gelu(T x, bool by_tanh) {
  if (std::isinf(x)) return x > 0 ? x : T{0};
  return by_tanh ? gelu_by_tanh(x) : gelu_by_erf(x);
}

}  // namespace

Error portable_elu(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Number alpha = call.number(1), scale = call.number(2), input_scale = call.number(3);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_activation(ctx, self, out, kFloats));
  const ScalarType computed = computed_in(self.type);
  const Constant positive(scale, computed), inner(input_scale, computed);
  const float single = alpha.as<float>() * scale.as<float>();
  const double twice = alpha.as<double>() * scale.as<double>();
  const Tensor* const in[] = {&self};
  if (computed == ScalarType::Double) {
    map_as<double>(computed, in, out, [=](double x) {
      return x <= 0.0 ? less_one(x * inner.twice) * twice : x * positive.twice;
    });
    return Error::Ok;
  }
  const auto each = [=](float x) {
    return x <= 0.0f ? less_one(x * inner.single) * single : x * positive.single;
  };
  if (!map_floats(in, out, each)) map_as<float>(computed, in, out, each);
  return Error::Ok;
}
HIL_OPERATOR("aten::elu.out", portable_elu);

Error portable_leaky_relu(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Number slope = call.number(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_activation(ctx, self, out, kFloats));
  HIL_REQUIRE(holds(self.type, slope), "the slope is out of the element type's range");
  const ScalarType computed = computed_in(self.type);
  const float single = kept(self.type, slope.as<float>());
  const double twice = slope.as<double>();
  const Tensor* const in[] = {&self};
  if (computed == ScalarType::Double) {
    map_as<double>(computed, in, out, [=](double x) { return x >= 0.0 ? x : x * twice; });
    return Error::Ok;
  }
  const auto each = [=](float x) { return x >= 0.0f ? x : x * single; };
  if (!map_floats(in, out, each)) map_as<float>(computed, in, out, each);
  return Error::Ok;
}
HIL_OPERATOR("aten::leaky_relu.out", portable_leaky_relu);

Error portable_hardtanh(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Number low = call.number(1), high = call.number(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_activation(ctx, self, out, kReals));
  HIL_REQUIRE(holds(self.type, low) && holds(self.type, high),
              "a bound is out of the element type's range");
  const ScalarType computed = computed_in(self.type);
  Constant from(low, computed), to(high, computed);
  from.single = kept(self.type, from.single);
  to.single = kept(self.type, to.single);
  const Tensor* const in[] = {&self};
  map_in(computed, in, out,
         [=](auto x) { return Smaller()(Larger()(x, from.like(x)), to.like(x)); });
  return Error::Ok;
}
HIL_OPERATOR("aten::hardtanh.out", portable_hardtanh);

Error portable_gelu(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  const bool by_tanh = call.is_text(1, "tanh");
  HIL_REQUIRE(by_tanh || call.is_text(1, "none"), "gelu is approximated by tanh or none");
  HIL_TRY(require_activation(ctx, self, out, kFloats));
  const Tensor* const in[] = {&self};
  if (self.type == ScalarType::Double) {
    map_as<double>(self.type, in, out, [=](double x) { return gelu(x, by_tanh); });
  } else {
    map_as<float>(ScalarType::Float, in, out, [=](float x) { return gelu(x, by_tanh); });
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::gelu.out", portable_gelu);

Error portable_glu(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kFloats));
  HIL_TRY(require_type(ctx, out, kFloats));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  HIL_REQUIRE(self.rank != 0 && self.sizes[axis] % 2 == 0, "the dimension cannot be halved");
  Shape shape = Shape::of(self);
  shape.sizes[axis] /= 2;
  HIL_TRY(give_shape(ctx, out, shape));
  // The halves lie in self as they would in a tensor of their own, but for their steps. ExecuTorch
  // numbers the elements of its output as they lie in memory.
  const Steps from = steps_of(self);
  const size_t half = static_cast<size_t>(shape.sizes[axis] * from.of[axis]);
  const auto each_of = [&](auto zero) {
    using T = decltype(zero);
    const Reader<T> read = reader_of<T>(self.type);
    const Writer<T> write = writer_of<T>(out.type);
    const size_t size = element_size(self.type);
    const auto keep = [&](T x) {
      return std::is_same<T, float>::value ? static_cast<T>(kept(self.type, static_cast<float>(x)))
                                           : x;
    };
    for (size_t i = 0; i < out.numel; ++i) {
      size_t rest = i, source = 0;
      for (size_t d = out.rank; d-- > 0;) {
        const size_t width = static_cast<size_t>(out.sizes[d]);
        source += rest % width * static_cast<size_t>(from.of[d]);
        rest /= width;
      }
      const T a = read(self.data + source * size);
      const T b = read(self.data + (source + half) * size);
      const T decayed = keep(std::exp(-b));
      const T gate = keep(T{1} / keep(T{1} + decayed));
      write(out.data + i * element_size(out.type), keep(a * gate));
    }
  };
  if (self.type == ScalarType::Double) {
    each_of(double{});
  } else {
    each_of(float{});
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::glu.out", portable_glu);

Error portable_logit(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Number eps = call.number_or_none(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, out, kWideFloats));
  HIL_TRY(give_shape_of(ctx, out, self));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  const bool bounded = eps.present();
  const double low = eps.as<double>(), high = 1.0 - low;
  const auto each = [=](auto x) {
    using T = decltype(x);
    if (bounded && static_cast<double>(x) < low) {
      x = static_cast<T>(low);
    } else if (bounded && static_cast<double>(x) > high) {
      x = static_cast<T>(high);
    }
    return std::log(x / (T{1} - x));
  };
  const Tensor* const in[] = {&self};
  if (out.type == ScalarType::Double) {
    map_as<double>(out.type, in, out, each);
  } else {
    map_as<float>(out.type, in, out, each);
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::logit.out", portable_logit);

}  // namespace hil
