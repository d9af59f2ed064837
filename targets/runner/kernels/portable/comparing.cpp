// Comparisons, logical and bitwise operators of two tensors, or of a tensor and a number.
#include "kernels/operator.h"
#include "kernels/portable/operands.h"

namespace hil {

namespace {

struct Equal {
  template <typename T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Less {
  template <typename T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessOrEqual {
  template <typename T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};
/// The other way round, and the opposite.
template <typename Is>
struct Swapped {
  template <typename T>
  bool operator()(T a, T b) const {
    return Is()(b, a);
  }
};
template <typename Is>
struct Not {
  template <typename T>
  bool operator()(T a, T b) const {
    return !Is()(a, b);
  }
};

template <typename Is>
Error compare_tensors(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& other = call.tensor(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  for (const Tensor* t : {&self, &other, static_cast<const Tensor*>(&out)}) {
    HIL_TRY(require_type(ctx, *t, kAll));
  }
  HIL_TRY(require_same_order(ctx, {&self, &other, &out}));
  HIL_TRY(give_broadcast_shape(ctx, out, {&self, &other}));
  ScalarType common = promoted(self.type, other.type);
  if (is_float(common) && self.type != other.type) common = ScalarType::Float;
  const Tensor* const in[] = {&self, &other};
  map_in(computed_in(common), in, out, Is());
  return Error::Ok;
}

template <typename Is>
Error compare_number(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Number other = call.number(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, out, kAll));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(give_shape_of(ctx, out, self));
  const ScalarType computed = computed_in(promoted(self.type, other));
  const Constant b(other, computed);
  const Tensor* const in[] = {&self};
  map_in(computed, in, out, [=](auto a) { return Is()(a, b.like(a)); });
  return Error::Ok;
}

/// Of bools, which any value is.
template <typename Of>
Error logical(KernelContext& ctx, Args args, Of of) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& other = call.tensor(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  for (const Tensor* t : {&self, &other, static_cast<const Tensor*>(&out)}) {
    HIL_TRY(require_type(ctx, *t, kAll));
  }
  HIL_TRY(require_same_order(ctx, {&self, &other, &out}));
  HIL_TRY(give_broadcast_shape(ctx, out, {&self, &other}));
  const Tensor* const in[] = {&self, &other};
  map_as<bool>(ScalarType::Bool, in, out, of);
  return Error::Ok;
}

Error require_bits(KernelContext& ctx, ScalarType common, Tensors inputs, const Tensor& out) {
  for (const Tensor* t : inputs) HIL_TRY(require_type(ctx, *t, kWholes | kBool));
  HIL_TRY(require_type(ctx, out, kAll));
  HIL_REQUIRE(can_cast(common, out.type), "out cannot hold the result's element type");
  HIL_REQUIRE(!is_float(common), "a float has no bits");
  return Error::Ok;
}

template <typename Of>
Error bitwise_tensors(KernelContext& ctx, Args args, Of of) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& other = call.tensor(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  const ScalarType common = promoted(self.type, other.type);
  HIL_TRY(require_bits(ctx, common, {&self, &other}, out));
  HIL_TRY(require_same_order(ctx, {&self, &other, &out}));
  HIL_TRY(give_broadcast_shape(ctx, out, {&self, &other}));
  const Tensor* const in[] = {&self, &other};
  map_as<int64_t>(common, in, out, of);
  return Error::Ok;
}

template <typename Of>
Error bitwise_number(KernelContext& ctx, Args args, Of of) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Number other = call.number(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  const ScalarType common = promoted(self.type, other);
  HIL_TRY(require_bits(ctx, common, {&self}, out));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(give_shape_of(ctx, out, self));
  const int64_t b = wrapped(common, other.as<int64_t>());
  const Tensor* const in[] = {&self};
  map_as<int64_t>(common, in, out, [=](int64_t a) { return of(a, b); });
  return Error::Ok;
}

int64_t bits_and(int64_t a, int64_t b) { return a & b; }
int64_t bits_or(int64_t a, int64_t b) { return a | b; }
int64_t bits_xor(int64_t a, int64_t b) { return a ^ b; }

/// A shift by as many bits as a word has or more is undefined in C++: nothing is left.
int64_t shifted_left(int64_t a, int64_t b) {
  return b < 0 || b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
int64_t shifted_right(int64_t a, int64_t b) { return b < 0 || b > 63 ? (a < 0 ? -1 : 0) : a >> b; }

}  // namespace

#define HIL_COMPARISON(NAME, ...)                                 \
  Error portable_##NAME##_tensor(KernelContext& ctx, Args args) { \
    return compare_tensors<__VA_ARGS__>(ctx, args);               \
  }                                                               \
  Error portable_##NAME##_scalar(KernelContext& ctx, Args args) { \
    return compare_number<__VA_ARGS__>(ctx, args);                \
  }

HIL_COMPARISON(eq, Equal)
HIL_COMPARISON(ne, Not<Equal>)
HIL_COMPARISON(lt, Less)
HIL_COMPARISON(le, LessOrEqual)
HIL_COMPARISON(gt, Swapped<Less>)
HIL_COMPARISON(ge, Swapped<LessOrEqual>)

HIL_OPERATOR("aten::eq.Tensor_out", portable_eq_tensor);
HIL_OPERATOR("aten::eq.Scalar_out", portable_eq_scalar);
HIL_OPERATOR("aten::ne.Tensor_out", portable_ne_tensor);
HIL_OPERATOR("aten::ne.Scalar_out", portable_ne_scalar);
HIL_OPERATOR("aten::lt.Tensor_out", portable_lt_tensor);
HIL_OPERATOR("aten::lt.Scalar_out", portable_lt_scalar);
HIL_OPERATOR("aten::le.Tensor_out", portable_le_tensor);
HIL_OPERATOR("aten::le.Scalar_out", portable_le_scalar);
HIL_OPERATOR("aten::gt.Tensor_out", portable_gt_tensor);
HIL_OPERATOR("aten::gt.Scalar_out", portable_gt_scalar);
HIL_OPERATOR("aten::ge.Tensor_out", portable_ge_tensor);
HIL_OPERATOR("aten::ge.Scalar_out", portable_ge_scalar);

Error portable_logical_and(KernelContext& ctx, Args args) {
  return logical(ctx, args, [](bool a, bool b) { return a && b; });
}
HIL_OPERATOR("aten::logical_and.out", portable_logical_and);

Error portable_logical_or(KernelContext& ctx, Args args) {
  return logical(ctx, args, [](bool a, bool b) { return a || b; });
}
HIL_OPERATOR("aten::logical_or.out", portable_logical_or);

Error portable_logical_xor(KernelContext& ctx, Args args) {
  return logical(ctx, args, [](bool a, bool b) { return a != b; });
}
HIL_OPERATOR("aten::logical_xor.out", portable_logical_xor);

#define HIL_BITWISE(NAME, OF)                                     \
  Error portable_##NAME##_tensor(KernelContext& ctx, Args args) { \
    return bitwise_tensors(ctx, args, OF);                        \
  }                                                               \
  Error portable_##NAME##_scalar(KernelContext& ctx, Args args) { \
    return bitwise_number(ctx, args, OF);                         \
  }

HIL_BITWISE(bitwise_and, bits_and)
HIL_BITWISE(bitwise_or, bits_or)
HIL_BITWISE(bitwise_xor, bits_xor)
HIL_BITWISE(bitwise_left_shift, shifted_left)
HIL_BITWISE(bitwise_right_shift, shifted_right)

HIL_OPERATOR("aten::bitwise_and.Tensor_out", portable_bitwise_and_tensor);
HIL_OPERATOR("aten::bitwise_and.Scalar_out", portable_bitwise_and_scalar);
HIL_OPERATOR("aten::bitwise_or.Tensor_out", portable_bitwise_or_tensor);
HIL_OPERATOR("aten::bitwise_or.Scalar_out", portable_bitwise_or_scalar);
HIL_OPERATOR("aten::bitwise_xor.Tensor_out", portable_bitwise_xor_tensor);
HIL_OPERATOR("aten::bitwise_xor.Scalar_out", portable_bitwise_xor_scalar);
HIL_OPERATOR("aten::bitwise_left_shift.Tensor_out", portable_bitwise_left_shift_tensor);
HIL_OPERATOR("aten::bitwise_left_shift.Tensor_Scalar_out", portable_bitwise_left_shift_scalar);
HIL_OPERATOR("aten::bitwise_right_shift.Tensor_out", portable_bitwise_right_shift_tensor);
HIL_OPERATOR("aten::bitwise_right_shift.Tensor_Scalar_out", portable_bitwise_right_shift_scalar);

}  // namespace hil
