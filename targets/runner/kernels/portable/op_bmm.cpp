// aten::bmm.out(self, mat2, out): the product of each matrix of a batch, for float. Sums go in
// order, as those of ExecuTorch's portable kernel do.
#include "kernels/arithmetic.h"
#include "kernels/operator.h"

namespace hil {

namespace {

bool is_product(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  return self.rank == 3 && mat2.rank == 3 && out.rank == 3 && self.sizes[0] == mat2.sizes[0] &&
         self.sizes[0] == out.sizes[0] && self.sizes[2] == mat2.sizes[1] &&
         out.sizes[1] == self.sizes[1] && out.sizes[2] == mat2.sizes[2];
}

}  // namespace

Error op_bmm(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const Tensor& mat2 = ctx.tensor(args, 1);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_operands(ctx, self, mat2, out));
  if (!is_product(self, mat2, out)) {
    return ctx.fail(Error::InvalidArgument, "out is not the shape of the product");
  }
  if (!is_contiguous(self) || !is_contiguous(mat2) || !is_contiguous(out)) {
    return ctx.fail(Error::InvalidArgument, "a tensor is not contiguous");
  }
  if (out.type != ScalarType::Float) return unsupported_type(ctx, out.type);
  const int32_t rows = self.sizes[1], inner = self.sizes[2], columns = mat2.sizes[2];
  for (int32_t row = 0; row < self.sizes[0] * rows; ++row) {
    const float* x = self.as<float>() + row * inner;
    const float* y = mat2.as<float>() + row / rows * inner * columns;
    for (int32_t column = 0; column < columns; ++column) {
      float sum = 0.0f;
      for (int32_t k = 0; k < inner; ++k) sum += x[k] * y[k * columns + column];
      out.as<float>()[row * columns + column] = sum;
    }
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::bmm.out", op_bmm);

}  // namespace hil
