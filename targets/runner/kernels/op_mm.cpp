// aten::mm.out(self, mat2, out): the product of two matrices, any dim order. Sums go in order, in
// the elements' own type, as those of ExecuTorch's portable kernel do.
#include "kernels/arithmetic.h"
#include "kernels/elements.h"
#include "kernels/operator.h"

namespace hil {

namespace {

float dot(const float* x, int32_t x_step, const float* y, int32_t y_step, int32_t count) {
  float sum = 0.0f;
  for (int32_t k = 0; k < count; ++k) sum += x[k * x_step] * y[k * y_step];
  return sum;
}

/// Modulo 2^64, and so modulo every smaller type.
int64_t dot(Load load, const uint8_t* x, int32_t x_step, const uint8_t* y, int32_t y_step,
            int32_t count) {
  uint64_t sum = 0;
  for (int32_t k = 0; k < count; ++k) {
    const Scalar a = load(x + k * x_step), b = load(y + k * y_step);
    sum += static_cast<uint64_t>(a.whole) * static_cast<uint64_t>(b.whole);
  }
  return static_cast<int64_t>(sum);
}

/// Calls each(offset in out, of a row of self, of a column of mat2) for every element of out.
template <typename Each>
void each_element(const Tensor& self, const Tensor& mat2, const Tensor& out, Each each) {
  const Strides a = strides_of(self), b = strides_of(mat2), to = strides_of(out);
  for (int32_t i = 0; i < out.sizes[0]; ++i) {
    for (int32_t j = 0; j < out.sizes[1]; ++j) {
      each(i * to.step[0] + j * to.step[1], i * a.step[0], j * b.step[1]);
    }
  }
}

}  // namespace

Error op_mm(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const Tensor& mat2 = ctx.tensor(args, 1);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_operands(ctx, self, mat2, out));
  if (self.rank != 2 || mat2.rank != 2 || out.rank != 2 || self.sizes[1] != mat2.sizes[0] ||
      out.sizes[0] != self.sizes[0] || out.sizes[1] != mat2.sizes[1]) {
    return ctx.fail(Error::InvalidArgument, "out is not the shape of the product");
  }
  const Load load = load_for(out.type);
  if (load == nullptr || out.type == ScalarType::Double) return unsupported_type(ctx, out.type);
  const int32_t x_step = strides_of(self).step[1], y_step = strides_of(mat2).step[0];
  const int32_t inner = self.sizes[1];
  if (out.type == ScalarType::Float) {
    each_element(self, mat2, out, [&](int32_t o, int32_t a, int32_t b) {
      out.as<float>()[o] = dot(self.as<float>() + a, x_step, mat2.as<float>() + b, y_step, inner);
    });
    return Error::Ok;
  }
  const Store store = store_for(out.type);
  const int32_t size = static_cast<int32_t>(element_size(out.type));
  each_element(self, mat2, out, [&](int32_t o, int32_t a, int32_t b) {
    const int64_t sum =
        dot(load, self.data + a * size, x_step * size, mat2.data + b * size, y_step * size, inner);
    store(Scalar{false, 0.0, sum}, out.data + o * size);
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::mm.out", op_mm);

}  // namespace hil
