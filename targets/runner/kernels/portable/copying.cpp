// Copies of a whole tensor, under the same shape or another one.
#include "kernels/operator.h"
#include "kernels/portable/moving.h"

namespace hil {

namespace {

void copy_all(const Tensor& in, Tensor& out) { copy_bytes(out.data, in.data, in.nbytes); }

/// The same shape, type and order.
Error copy_same(KernelContext& ctx, const Tensor& self, Tensor& out) {
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(give_shape_of(ctx, out, self));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  copy_all(self, out);
  return Error::Ok;
}

/// Another shape of the same elements, both plain.
Error copy_reshaped(KernelContext& ctx, const Tensor& self, const Shape& shape, Tensor& out) {
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(require_plain(ctx, self));
  HIL_TRY(give_shape(ctx, out, shape));
  HIL_REQUIRE(self.numel == out.numel, "out has another number of elements");
  copy_all(self, out);
  return Error::Ok;
}

/// Whether a list asks for the order that a tensor has; an absent one for that of `like`.
bool is_order_of(const Ints& order, const Tensor& like, const Tensor& out) {
  const size_t count = order.present ? order.size() : like.rank;
  bool same = count == out.rank;
  for (size_t i = 0; same && i < count; ++i) {
    same = out.dim_order[i] == (order.present ? order[i] : like.dim_order[i]);
  }
  return same;
}

/// _to_dim_order_copy and _clone_dim_order: (self, non_blocking, dim_order?, out).
Error copy_in_order(KernelContext& ctx, Args args, bool keeps_type) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const bool non_blocking = call.boolean(1);
  const Ints order = call.ints_or_none(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, out, kAll));
  if (keeps_type) HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_REQUIRE(!non_blocking, "a copy in the background is not supported");
  HIL_REQUIRE(!order.present || is_plain_or_channels_inner(out),
              "the dim order is neither plain nor channels-last");
  HIL_REQUIRE(!order.present || order.size() == self.rank, "the dim order has another rank");
  HIL_REQUIRE(is_order_of(order, self, out), "out has another dim order");
  HIL_TRY(give_shape_of(ctx, out, self));
  // In the order of out's memory.
  const Steps from = steps_of(self);
  Shape shape;
  int64_t steps[kMaxRank];
  for (size_t i = 0; i < out.rank; ++i) {
    shape.add(out.sizes[out.dim_order[i]]);
    steps[i] = from.of[out.dim_order[i]];
  }
  move_by_steps(self, 0, shape, steps, out);
  return Error::Ok;
}

/// Copies src, broadcast to the shape of out, into out's type.
void copy_broadcast(const Tensor& src, Tensor& out) {
  const Steps own = steps_of(src);
  const Shape shape = Shape::of(out);
  int64_t steps[kMaxRank] = {};
  const size_t added = static_cast<size_t>(out.rank - src.rank);
  bool flat = true;
  for (size_t i = 0; i < src.rank; ++i) {
    steps[added + i] = src.sizes[i] == 1 ? 0 : own.of[i];
    flat = flat && src.sizes[i] == out.sizes[added + i];
  }
  for (size_t i = 0; i < added; ++i) flat = flat && out.sizes[i] == 1;
  if (flat) {
    const Mover mover(src.type, out.type, false);
    mover.move_run(src.data, out.data, out.numel);
  } else {
    move_by_steps(src, 0, shape, steps, out);
  }
}

}  // namespace

/// (self, out).
Error portable_copy_of(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  Tensor& out = call.tensor(1);
  if (!call.ok()) return ctx.argument_error();
  return copy_same(ctx, self, out);
}
HIL_OPERATOR("aten::alias_copy.out", portable_copy_of);
HIL_OPERATOR("aten::detach_copy.out", portable_copy_of);
HIL_OPERATOR("aten::lift_fresh_copy.out", portable_copy_of);

Error portable_clone(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t format = call.integer_or(1, 0);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(format == 0, "this memory format is not supported");
  return copy_same(ctx, self, out);
}
HIL_OPERATOR("aten::clone.out", portable_clone);

Error portable_to_dim_order_copy(KernelContext& ctx, Args args) {
  return copy_in_order(ctx, args, false);
}
HIL_OPERATOR("dim_order_ops::_to_dim_order_copy.out", portable_to_dim_order_copy);

Error portable_clone_dim_order(KernelContext& ctx, Args args) {
  return copy_in_order(ctx, args, true);
}
HIL_OPERATOR("dim_order_ops::_clone_dim_order.out", portable_clone_dim_order);

Error portable_to_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const bool non_blocking = call.boolean(1);
  const int64_t format = call.integer_or(2, 0);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, out, kAll));
  HIL_REQUIRE(!non_blocking, "a copy in the background is not supported");
  HIL_REQUIRE(format == 0, "this memory format is not supported");
  HIL_TRY(give_shape_of(ctx, out, self));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(require_plain(ctx, self));
  Mover(self.type, out.type, false).move_run(self.data, out.data, out.numel);
  return Error::Ok;
}
HIL_OPERATOR("aten::_to_copy.out", portable_to_copy);

Error portable_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& src = call.tensor(1);
  const bool non_blocking = call.boolean(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(!non_blocking, "a copy in the background is not supported");
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, src, kAll));
  HIL_REQUIRE(broadcasts_to(src, Shape::of(self)), "shapes do not broadcast");
  HIL_TRY(give_shape_of(ctx, out, self));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  copy_broadcast(src, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::copy.out", portable_copy);

Error portable_copy_into(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  Tensor& self = call.tensor(0);
  const Tensor& src = call.tensor(1);
  const bool non_blocking = call.boolean(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(!non_blocking, "a copy in the background is not supported");
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, src, kAll));
  HIL_REQUIRE(broadcasts_to(src, Shape::of(self)), "shapes do not broadcast");
  HIL_TRY(require_same_order(ctx, {&self, &src}));
  HIL_REQUIRE(!self.constant, "the target is a constant");
  copy_broadcast(src, self);
  return Error::Ok;
}
HIL_OPERATOR("aten::copy_", portable_copy_into);

Error portable_view_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints size = call.ints(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(size.size() == out.rank, "out has another number of dimensions");
  Shape shape;
  size_t known = 1, inferred = kMaxRank;
  for (size_t i = 0; i < size.size(); ++i) {
    HIL_REQUIRE(size[i] != -1 || inferred == kMaxRank, "two dimensions are to be inferred");
    if (size[i] == -1) inferred = i;
    known *= size[i] == -1 ? 1 : static_cast<size_t>(size[i]);
    shape.add(size[i]);
  }
  if (inferred != kMaxRank) {
    HIL_REQUIRE(known != 0, "a dimension cannot be inferred");
    shape.sizes[inferred] = static_cast<int64_t>(self.numel / known);
  }
  return copy_reshaped(ctx, self, shape, out);
}
HIL_OPERATOR("aten::view_copy.out", portable_view_copy);

Error portable_squeeze_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  Shape shape;
  for (size_t i = 0; i < self.rank; ++i) {
    if (i != axis || self.sizes[i] != 1) shape.add(self.sizes[i]);
  }
  return copy_reshaped(ctx, self, shape, out);
}
HIL_OPERATOR("aten::squeeze_copy.dim_out", portable_squeeze_copy);

Error portable_squeeze_copy_dims(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints dims = call.ints(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  uint32_t dropped = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    size_t axis;
    HIL_TRY(require_dim(ctx, self, dims[i], &axis));
    HIL_REQUIRE((dropped >> axis & 1) == 0, "a dimension is named twice");
    dropped |= 1u << axis;
  }
  Shape shape;
  for (size_t i = 0; i < self.rank; ++i) {
    if ((dropped >> i & 1) == 0 || self.sizes[i] != 1) shape.add(self.sizes[i]);
  }
  return copy_reshaped(ctx, self, shape, out);
}
HIL_OPERATOR("aten::squeeze_copy.dims_out", portable_squeeze_copy_dims);

Error portable_unsqueeze_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  int64_t dim = call.integer(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  if (dim < 0) dim += out.rank;
  HIL_REQUIRE(self.rank + 1 == out.rank, "out does not have one dimension more");
  HIL_REQUIRE(dim >= 0 && dim <= self.rank, "a dimension does not exist");
  Shape shape;
  for (size_t i = 0; i < out.rank; ++i) {
    const size_t place = static_cast<size_t>(dim);
    shape.add(i == place ? 1 : self.sizes[i < place ? i : i - 1]);
  }
  HIL_TRY(give_shape(ctx, out, shape));
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  copy_all(self, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::unsqueeze_copy.out", portable_unsqueeze_copy);

}  // namespace hil
