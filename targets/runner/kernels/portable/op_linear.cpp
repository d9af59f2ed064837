// aten::linear.out(input, weight, bias?, out) for float: input * transposed weight + bias. Sums go
// in order and begin with 0; the bias comes last.
#include "kernels/arithmetic.h"
#include "kernels/operator.h"

namespace hil {

namespace {

Error check_shapes(KernelContext& ctx, const Tensor& input, const Tensor& weight,
                   const Tensor* bias, const Tensor& out) {
  bool fits = weight.rank == 2 && input.rank >= 1 && out.rank == input.rank &&
              input.sizes[input.rank - 1] == weight.sizes[1] &&
              out.sizes[out.rank - 1] == weight.sizes[0];
  for (size_t i = 0; fits && i + 1 < input.rank; ++i) fits = out.sizes[i] == input.sizes[i];
  if (!fits) return ctx.fail(Error::InvalidArgument, "out is not the shape of the product");
  if (!is_contiguous(input) || !is_contiguous(weight) || !is_contiguous(out)) {
    return ctx.fail(Error::InvalidArgument, "a tensor is not contiguous");
  }
  if (bias == nullptr) return Error::Ok;
  HIL_TRY(check_tensor(ctx, "bias", *bias, out.type));
  return check_numel(ctx, "bias", *bias, static_cast<size_t>(weight.sizes[0]));
}

}  // namespace

Error op_linear(KernelContext& ctx, Args args) {
  const Tensor& input = ctx.tensor(args, 0);
  const Tensor& weight = ctx.tensor(args, 1);
  const Tensor* bias = ctx.optional_tensor(args, 2);
  Tensor& out = ctx.tensor(args, 3);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_operands(ctx, input, weight, out));
  HIL_TRY(check_shapes(ctx, input, weight, bias, out));
  if (out.type != ScalarType::Float) return unsupported_type(ctx, out.type);
  const int32_t inner = weight.sizes[1], outs = weight.sizes[0];
  for (size_t i = 0; i < out.numel; ++i) {
    const size_t channel = i % static_cast<size_t>(outs);
    const float* x = input.as<float>() + i / static_cast<size_t>(outs) * static_cast<size_t>(inner);
    const float* w = weight.as<float>() + channel * static_cast<size_t>(inner);
    float sum = 0.0f;
    for (int32_t k = 0; k < inner; ++k) sum += x[k] * w[k];
    out.as<float>()[i] = bias == nullptr ? sum : sum + bias->as<float>()[channel];
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::linear.out", op_linear);

}  // namespace hil
