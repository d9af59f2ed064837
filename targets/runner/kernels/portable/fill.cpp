#include "kernels/portable/fill.h"

#include "kernels/arithmetic.h"
#include "kernels/elements.h"

namespace hil {

namespace {

Scalar read_value(KernelContext& ctx, Args args, size_t index) {
  if (index < args.size() && args[index]->tag == Tag::Bool) {
    return Scalar::of(args[index]->as_bool ? 1 : 0);
  }
  if (index < args.size() && args[index]->tag == Tag::Double) {
    return {true, args[index]->as_double, 0};
  }
  return {false, 0.0, ctx.integer(args, index)};
}

/// Whether storing a value and loading it again gives the same, as ExecuTorch's kernels demand of
/// integer types.
bool is_held(const Scalar& value, Load load, Store store) {
  uint64_t element = 0;
  store(value, &element);
  const Scalar held = load(&element);
  return value.is_real ? value.real == static_cast<double>(held.whole) : value.whole == held.whole;
}

}  // namespace

Error fill(KernelContext& ctx, Args args, size_t index, Tensor& out) {
  const Scalar value = read_value(ctx, args, index);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "out", out, out.type));
  const Load load = load_for(out.type);
  const Store store = store_for(out.type);
  if (load == nullptr || store == nullptr) return unsupported_type(ctx, out.type);
  const bool is_whole = out.type != ScalarType::Float && out.type != ScalarType::Double;
  if (is_whole && out.type != ScalarType::Bool && !is_held(value, load, store)) {
    return ctx.fail(Error::InvalidArgument, "the value does not fit the element type");
  }
  const size_t size = element_size(out.type);
  for (size_t i = 0; i < out.numel; ++i) store(value, out.data + i * size);
  return Error::Ok;
}

}  // namespace hil
