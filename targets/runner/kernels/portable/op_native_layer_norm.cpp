// aten::native_layer_norm.out(input, normalized_shape, weight?, bias?, eps, out, mean, rstd) for
// contiguous floats. The variance is the mean square less the squared mean, in float and in order,
// as in ExecuTorch's portable kernel; torch's is another in the last bits.
#include <cmath>

#include "kernels/arithmetic.h"
#include "kernels/operator.h"
#include "kernels/portable/norm_parameter.h"

namespace hil {

namespace {

struct Norm {
  size_t rows = 1, width = 1;
  const float *weight = nullptr, *bias = nullptr;  // null: 1 and 0
  float eps = 0.0f;

  void run(const float* x, float* y, float* mean, float* inverse) const;
};

void Norm::run(const float* x, float* y, float* mean, float* inverse) const {
  float sum = 0.0f, squares = 0.0f;
  for (size_t i = 0; i < width; ++i) sum += x[i];
  for (size_t i = 0; i < width; ++i) squares += x[i] * x[i];
  const float count = static_cast<float>(width);
  *mean = sum / count;
  const float deviation = std::sqrt(squares / count - *mean * *mean + eps);
  *inverse = 1.0f / deviation;
  for (size_t i = 0; i < width; ++i) {
    const float normal = (x[i] - *mean) / deviation;
    y[i] = normal * (weight == nullptr ? 1.0f : weight[i]) + (bias == nullptr ? 0.0f : bias[i]);
  }
}

/// The tail of input's shape that is normalised together.
Error measure(KernelContext& ctx, Args args, const Tensor& input, Norm* norm) {
  int32_t shape[kMaxRank];
  const size_t count = ctx.int_list_upto(args, 1, shape, kMaxRank);
  if (!ctx.ok()) return ctx.argument_error();
  bool fits = count >= 1 && count <= input.rank;
  for (size_t i = 0; fits && i < input.rank; ++i) {
    const size_t leading = input.rank - count, extent = static_cast<size_t>(input.sizes[i]);
    if (i < leading) {
      norm->rows *= extent;
    } else {
      norm->width *= extent;
      fits = shape[i - leading] == input.sizes[i];
    }
  }
  if (fits && norm->width != 0) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "normalized_shape is not the end of input's shape");
}

}  // namespace

Error op_native_layer_norm(KernelContext& ctx, Args args) {
  const Tensor& input = ctx.tensor(args, 0);
  const Tensor* weight = ctx.optional_tensor(args, 2);
  const Tensor* bias = ctx.optional_tensor(args, 3);
  Norm norm;
  norm.eps = static_cast<float>(ctx.number(args, 4));
  Tensor& out = ctx.tensor(args, 5);
  Tensor& mean = ctx.tensor(args, 6);
  Tensor& inverse = ctx.tensor(args, 7);
  HIL_TRY(measure(ctx, args, input, &norm));
  const Tensor* const tensors[] = {&input, &out, &mean, &inverse};
  for (const Tensor* t : tensors) {
    HIL_TRY(check_tensor(ctx, "a tensor", *t, ScalarType::Float));
    if (!is_contiguous(*t)) return ctx.fail(Error::InvalidArgument, "a tensor is not contiguous");
  }
  HIL_TRY(read_parameter(ctx, "weight", weight, norm.width, &norm.weight));
  HIL_TRY(read_parameter(ctx, "bias", bias, norm.width, &norm.bias));
  if (!same_shape(input, out) || mean.numel != norm.rows || inverse.numel != norm.rows) {
    return ctx.fail(Error::InvalidArgument, "the outputs do not have the shape of the norm");
  }
  for (size_t row = 0; row < norm.rows; ++row) {
    const size_t first = row * norm.width;
    norm.run(input.as<float>() + first, out.as<float>() + first, mean.as<float>() + row,
             inverse.as<float>() + row);
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::native_layer_norm.out", op_native_layer_norm);

}  // namespace hil
