// aten::addmm.out(self, mat1, mat2, beta, alpha, out) for float: beta * self + alpha * the product,
// self with broadcasting. Sums go in order, as those of ExecuTorch's portable kernel do.
#include "kernels/arithmetic.h"
#include "kernels/operator.h"

namespace hil {

namespace {

/// How far apart in ``self`` neighbours of a row and of a column of ``out`` are; 0: the same one.
struct Steps {
  int32_t row;
  int32_t column;
};

bool broadcasts(const Tensor& self, const Tensor& out, Steps* steps) {
  const int32_t columns = self.rank < 1 ? 1 : self.sizes[self.rank - 1];
  const int32_t rows = self.rank < 2 ? 1 : self.sizes[0];
  if (self.rank > 2 || (columns != 1 && columns != out.sizes[1]) ||
      (rows != 1 && rows != out.sizes[0])) {
    return false;
  }
  *steps = {rows == 1 ? 0 : columns, columns == 1 ? 0 : 1};
  return true;
}

bool is_product(const Tensor& mat1, const Tensor& mat2, const Tensor& out) {
  return mat1.rank == 2 && mat2.rank == 2 && out.rank == 2 && mat1.sizes[1] == mat2.sizes[0] &&
         out.sizes[0] == mat1.sizes[0] && out.sizes[1] == mat2.sizes[1];
}

}  // namespace

Error op_addmm(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const Tensor& mat1 = ctx.tensor(args, 1);
  const Tensor& mat2 = ctx.tensor(args, 2);
  const float beta = static_cast<float>(ctx.number(args, 3));
  const float alpha = static_cast<float>(ctx.number(args, 4));
  Tensor& out = ctx.tensor(args, 5);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_operands(ctx, mat1, mat2, out));
  HIL_TRY(check_tensor(ctx, "self", self, out.type));
  Steps steps;
  if (!is_product(mat1, mat2, out) || !broadcasts(self, out, &steps)) {
    return ctx.fail(Error::InvalidArgument, "out is not the shape of the product and self");
  }
  if (!is_contiguous(self) || !is_contiguous(mat1) || !is_contiguous(mat2) || !is_contiguous(out)) {
    return ctx.fail(Error::InvalidArgument, "a tensor is not contiguous");
  }
  if (out.type != ScalarType::Float) return unsupported_type(ctx, out.type);
  const int32_t inner = mat1.sizes[1], columns = mat2.sizes[1];
  for (int32_t row = 0; row < out.sizes[0]; ++row) {
    const float* x = mat1.as<float>() + row * inner;
    for (int32_t column = 0; column < columns; ++column) {
      const float* y = mat2.as<float>() + column;
      float sum = 0.0f;
      for (int32_t k = 0; k < inner; ++k) sum += x[k] * y[k * columns];
      const float added = self.as<float>()[row * steps.row + column * steps.column];
      out.as<float>()[row * columns + column] = alpha * sum + beta * added;
    }
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::addmm.out", op_addmm);

}  // namespace hil
