// Operators that make a tensor of numbers: arange, full and their kin.
#include <cmath>

#include "kernels/layout.h"
#include "kernels/operator.h"
#include "kernels/portable/call.h"

namespace hil {

namespace {

Error require_shape(KernelContext& ctx, const Tensor& out, const Ints& sizes) {
  bool same = sizes.size() == out.rank;
  for (size_t i = 0; same && i < out.rank; ++i) same = sizes[i] == out.sizes[i];
  HIL_REQUIRE(same, "out does not have the size");
  return Error::Ok;
}

/// Every element of out is the number, converted as C++ does.
void fill(const Number& number, Tensor& out) {
  const size_t size = element_size(out.type);
  const Writer<double> write_real = writer_of<double>(out.type);
  const Writer<int64_t> write_whole = writer_of<int64_t>(out.type);
  for (size_t i = 0; i < out.numel; ++i) {
    if (number.tag == Tag::Double) {
      write_real(out.data + i * size, number.real);
    } else {
      write_whole(out.data + i * size, number.whole);
    }
  }
}

Error fill_checked(KernelContext& ctx, const Number& number, Tensor& out) {
  HIL_TRY(require_type(ctx, out, kAll));
  HIL_REQUIRE(holds(out.type, number), "the value does not fit the element type");
  fill(number, out);
  return Error::Ok;
}

Number whole(int64_t value) {
  Number number;
  number.tag = Tag::Int;
  number.whole = value;
  return number;
}

Error arange(KernelContext& ctx, double start, double end, double step, Tensor& out) {
  HIL_REQUIRE(out.rank == 1, "out is not a vector");
  HIL_REQUIRE((step > 0.0 && end >= start) || (step < 0.0 && end <= start),
              "the step does not lead from the start to the end");
  HIL_TRY(require_plain(ctx, out));
  HIL_TRY(require_type(ctx, out, kReals));
  const double count = std::ceil((end - start) / step);
  HIL_REQUIRE(count == static_cast<double>(out.numel), "out does not have the range's length");
  const size_t size = element_size(out.type);
  const Writer<double> write = writer_of<double>(out.type);
  for (size_t i = 0; i < out.numel; ++i) {
    write(out.data + i * size, start + static_cast<double>(i) * step);
  }
  return Error::Ok;
}

}  // namespace

Error portable_arange(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Number end = call.number(0);
  Tensor& out = call.tensor(1);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(end.tag != Tag::Bool, "the end is a bool");
  return arange(ctx, 0.0, end.as<double>(), 1.0, out);
}
HIL_OPERATOR("aten::arange.out", portable_arange);

Error portable_arange_start(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Number start = call.number(0), end = call.number(1), step = call.number(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  for (const Number* number : {&start, &end, &step}) {
    HIL_REQUIRE(number->tag != Tag::Bool, "a bound or the step is a bool");
  }
  return arange(ctx, start.as<double>(), end.as<double>(), step.as<double>(), out);
}
HIL_OPERATOR("aten::arange.start_out", portable_arange_start);

Error portable_full(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Ints size = call.ints(0);
  const Number value = call.number(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_shape(ctx, out, size));
  return fill_checked(ctx, value, out);
}
HIL_OPERATOR("aten::full.out", portable_full);

/// ExecuTorch's kernel takes plain tensors alone; a convolution's result on a Cortex-M is none.
Error portable_full_like(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Number value = call.number(1);
  const int64_t format = call.integer_or(2, 0);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  constexpr int64_t kContiguous = 0, kPreserve = 1;
  HIL_REQUIRE(format == kContiguous || format == kPreserve, "this memory format is not supported");
  HIL_REQUIRE(same_layout(self, out), "self and out differ in shape or dim order");
  return fill_checked(ctx, value, out);
}
HIL_OPERATOR("aten::full_like.out", portable_full_like);

Error portable_ones(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Ints size = call.ints(0);
  Tensor& out = call.tensor(1);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_shape(ctx, out, size));
  return fill_checked(ctx, whole(1), out);
}
HIL_OPERATOR("aten::ones.out", portable_ones);

Error portable_zeros(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Ints size = call.ints(0);
  Tensor& out = call.tensor(1);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_shape(ctx, out, size));
  for (size_t i = 0; i < out.nbytes; ++i) out.data[i] = 0;
  return Error::Ok;
}
HIL_OPERATOR("aten::zeros.out", portable_zeros);

/// Memory without values; its size is argument 0, its form argument 1.
Error portable_empty(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Ints size = call.ints(0);
  const Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  return require_shape(ctx, out, size);
}
HIL_OPERATOR("aten::empty.out", portable_empty);
HIL_OPERATOR("dim_order_ops::_empty_dim_order.out", portable_empty);

Error portable_scalar_tensor(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Number value = call.number(0);
  Tensor& out = call.tensor(1);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(out.rank == 0, "out has dimensions");
  return fill_checked(ctx, value, out);
}
HIL_OPERATOR("aten::scalar_tensor.out", portable_scalar_tensor);

Error portable_fill_scalar(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Number value = call.number(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(give_shape_of(ctx, out, self));
  return fill_checked(ctx, value, out);
}
HIL_OPERATOR("aten::fill.Scalar_out", portable_fill_scalar);

Error portable_fill_tensor(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& value = call.tensor(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(value.rank == 0, "the value has dimensions");
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(give_shape_of(ctx, out, self));
  HIL_TRY(require_type(ctx, out, kAll));
  HIL_TRY(require_type(ctx, value, kAll));
  Number number = whole(0);
  if (is_float(value.type)) {
    number.tag = Tag::Double;
    number.real = reader_of<double>(value.type)(value.data);
  } else {
    number.whole = reader_of<int64_t>(value.type)(value.data);
  }
  fill(number, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::fill.Tensor_out", portable_fill_tensor);

}  // namespace hil
