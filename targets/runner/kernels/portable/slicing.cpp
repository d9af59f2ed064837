// Pieces of a dimension: taken out, put together, put in. ExecuTorch takes tensors of any dim order
// for plain ones here, and so do these kernels.
#include "kernels/operator.h"
#include "kernels/portable/moving.h"

namespace hil {

namespace {

size_t unsigned_of(int64_t value) { return static_cast<size_t>(value); }

/// `count` places of self's dimension from `first` on, `step` apart, as all of out's.
void take(const Tensor& self, size_t dim, int64_t first, int64_t count, int64_t step, Tensor& out) {
  const Slab slab{leading(self, dim), unsigned_of(count), trailing(self, dim)};
  move_slab(self, unsigned_of(first), unsigned_of(self.sizes[dim]), unsigned_of(step), out, 0,
            unsigned_of(count), 1, slab);
}

/// The places that a slice names: start and end within the dimension, and how many.
struct Range {
  int64_t start, end, count;

  Range(int64_t from, int64_t to, int64_t size, int64_t step) {
    start = limited(from < 0 ? from + size : from, size);
    end = limited(to < 0 ? to + size : to, size);
    count = start >= end ? 0 : (end - 1 - start) / step + 1;
  }
  static int64_t limited(int64_t value, int64_t size) {
    return value < 0 ? 0 : value > size ? size : value;
  }
};

/// The slice of arguments start, end and step at `i`.
Error slice_of(const Call& call, size_t i, int64_t size, Range* range, int64_t* step) {
  const int64_t start = call.integer_or(i, 0), end = call.integer_or(i + 1, size);
  *step = call.integer(i + 2);
  if (!call.ok()) return call.ctx.argument_error();
  KernelContext& ctx = call.ctx;
  HIL_REQUIRE(*step > 0, "the step is not positive");
  *range = Range(start, end, size, *step);
  return Error::Ok;
}

Tensor& piece_of(Span<Value* const> pieces, size_t i) { return pieces[i]->tensor; }

Error require_pieces(KernelContext& ctx, const Tensor& self, Span<Value* const> pieces) {
  HIL_TRY(require_type(ctx, self, kAll));
  for (size_t i = 0; i < pieces.size(); ++i) {
    HIL_TRY(require_type(ctx, piece_of(pieces, i), kAll));
    HIL_TRY(require_same_order(ctx, {&self, &piece_of(pieces, i)}));
  }
  return Error::Ok;
}

}  // namespace

Error portable_select_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1);
  int64_t index = call.integer(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(self.rank >= 1, "self has no dimension");
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  const int64_t size = self.sizes[axis];
  HIL_REQUIRE(index >= -size && index < size, "the index is not within the dimension");
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  Shape shape;
  for (size_t i = 0; i < self.rank; ++i) {
    if (i != axis) shape.add(self.sizes[i]);
  }
  HIL_TRY(give_shape(ctx, out, shape));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  take(self, axis, index < 0 ? index + size : index, 1, 1, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::select_copy.int_out", portable_select_copy);

Error portable_narrow_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1), start = call.integer(2), length = call.integer(3);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(self.rank >= 1, "self has no dimension");
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  const int64_t size = self.sizes[axis];
  HIL_REQUIRE(start >= -size && start <= size, "the start is not within the dimension");
  const int64_t first = start < 0 ? start + size : start;
  HIL_REQUIRE(length >= 0 && first + length <= size, "the length is not within the dimension");
  Shape shape = Shape::of(self);
  shape.sizes[axis] = length;
  HIL_TRY(give_shape(ctx, out, shape));
  take(self, axis, first, length, 1, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::narrow_copy.out", portable_narrow_copy);

Error portable_slice_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1);
  Tensor& out = call.tensor(5);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(self.rank >= 1, "self has no dimension");
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  Range range(0, 0, 0, 1);
  int64_t step;
  HIL_TRY(slice_of(call, 2, self.sizes[axis], &range, &step));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  Shape shape = Shape::of(self);
  shape.sizes[axis] = range.count;
  HIL_TRY(give_shape(ctx, out, shape));
  take(self, axis, range.start, range.count, step, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::slice_copy.Tensor_out", portable_slice_copy);

Error portable_split_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t size = call.integer(1), dim = call.integer(2);
  const Span<Value* const> pieces = call.tensors(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(self.rank >= 1, "self has no dimension");
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  const int64_t whole = self.sizes[axis];
  HIL_REQUIRE(size > 0 || (size == 0 && whole == 0), "the size of a piece is not positive");
  const int64_t count = size >= whole ? 1 : (whole + size - 1) / size;
  HIL_REQUIRE(static_cast<int64_t>(pieces.size()) == count,
              "there is not an output for each piece");
  HIL_TRY(require_pieces(ctx, self, pieces));
  int64_t first = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    Shape shape = Shape::of(self);
    shape.sizes[axis] = size < whole - first ? size : whole - first;
    HIL_TRY(give_shape(ctx, piece_of(pieces, i), shape));
    HIL_TRY(require_same_type(ctx, {&piece_of(pieces, 0), &piece_of(pieces, i)}));
    first += size;
  }
  first = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    Tensor& piece = piece_of(pieces, i);
    take(self, axis, first, piece.sizes[axis], 1, piece);
    first += piece.sizes[axis];
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::split_copy.Tensor_out", portable_split_copy);

Error portable_split_with_sizes_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints sizes = call.ints(1);
  const int64_t dim = call.integer(2);
  const Span<Value* const> pieces = call.tensors(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(self.rank >= 1, "self has no dimension");
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  HIL_REQUIRE(sizes.size() == pieces.size(), "there is not an output for each piece");
  HIL_TRY(require_pieces(ctx, self, pieces));
  int64_t total = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    HIL_REQUIRE(sizes[i] >= 0 && sizes[i] <= self.sizes[axis] - total,
                "the sizes do not add up to the dimension");
    total += sizes[i];
    Shape shape = Shape::of(self);
    shape.sizes[axis] = sizes[i];
    HIL_TRY(give_shape(ctx, piece_of(pieces, i), shape));
  }
  HIL_REQUIRE(total == self.sizes[axis], "the sizes do not add up to the dimension");
  int64_t first = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    take(self, axis, first, sizes[i], 1, piece_of(pieces, i));
    first += sizes[i];
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::split_with_sizes_copy.out", portable_split_with_sizes_copy);

Error portable_unbind_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1);
  const Span<Value* const> pieces = call.tensors(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(self.rank >= 1, "self has no dimension");
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  HIL_REQUIRE(static_cast<int64_t>(pieces.size()) == self.sizes[axis],
              "there is not an output for each place");
  HIL_TRY(require_pieces(ctx, self, pieces));
  HIL_TRY(require_plain(ctx, self));
  Shape shape;
  for (size_t i = 0; i < self.rank; ++i) {
    if (i != axis) shape.add(self.sizes[i]);
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    HIL_TRY(give_shape(ctx, piece_of(pieces, i), shape));
    HIL_TRY(require_same_type(ctx, {&piece_of(pieces, 0), &piece_of(pieces, i)}));
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    take(self, axis, static_cast<int64_t>(i), 1, 1, piece_of(pieces, i));
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::unbind_copy.int_out", portable_unbind_copy);

Error portable_cat(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Span<Value* const> tensors = call.tensors(0);
  int64_t dim = call.integer(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  if (dim < 0) dim += out.rank;
  HIL_REQUIRE(!tensors.empty(), "there is nothing to join");
  HIL_TRY(require_type(ctx, out, kAll));
  const Tensor* like = &piece_of(tensors, 0);  // the first one with elements
  for (size_t i = tensors.size(); i-- > 0;) {
    if (piece_of(tensors, i).numel != 0) like = &piece_of(tensors, i);
  }
  int64_t joined = 0;
  const Tensor* shaped = &piece_of(tensors, 0);  // the last one that is not an empty vector
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = piece_of(tensors, i);
    HIL_TRY(require_type(ctx, t, kAll));
    HIL_REQUIRE(can_cast(t.type, out.type), "out cannot hold an element type");
    HIL_TRY(require_same_order(ctx, {&t, &out}));
    if (t.rank != 1 || t.numel != 0) shaped = &t;
    if (t.numel == 0) continue;
    HIL_REQUIRE(t.rank == like->rank, "tensors differ in rank");
    for (size_t d = 0; d < t.rank; ++d) {
      HIL_REQUIRE(static_cast<int64_t>(d) == dim || t.sizes[d] == like->sizes[d],
                  "tensors differ in another dimension");
    }
    if (dim >= 0 && dim < t.rank) joined += t.sizes[dim];
  }
  HIL_REQUIRE(dim >= 0 && (like->numel == 0 || dim < like->rank), "a dimension does not exist");
  Shape shape = Shape::of(*shaped);
  if (dim < shaped->rank) shape.sizes[dim] = joined;
  HIL_TRY(give_shape(ctx, out, shape));
  const size_t axis = unsigned_of(dim);
  size_t first = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = piece_of(tensors, i);
    if (t.numel == 0) continue;
    const size_t count = unsigned_of(t.sizes[axis]);
    const Slab slab{leading(out, axis), count, trailing(out, axis)};
    // ExecuTorch copies the bits of another type with elements of the same size.
    Tensor source = t;
    if (element_size(t.type) == element_size(out.type)) source.type = out.type;
    move_slab(source, 0, count, 1, out, first, unsigned_of(out.sizes[axis]), 1, slab);
    first += count;
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::cat.out", portable_cat);

Error portable_stack(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Span<Value* const> tensors = call.tensors(0);
  int64_t dim = call.integer(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  if (dim < 0) dim += out.rank;
  HIL_REQUIRE(!tensors.empty(), "there is nothing to join");
  HIL_TRY(require_type(ctx, out, kAll));
  const Tensor& like = piece_of(tensors, 0);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = piece_of(tensors, i);
    HIL_TRY(require_type(ctx, t, kAll));
    HIL_REQUIRE(can_cast(t.type, out.type), "out cannot hold an element type");
    HIL_REQUIRE(has_shape(t, Shape::of(like)), "tensors differ in shape");
    HIL_TRY(require_same_order(ctx, {&t, &out}));
  }
  HIL_REQUIRE(dim >= 0 && dim <= like.rank, "a dimension does not exist");
  HIL_TRY(require_plain(ctx, out));
  Shape shape;
  for (size_t d = 0; d <= like.rank; ++d) {
    const int64_t at = static_cast<int64_t>(d);
    HIL_REQUIRE(shape.add(at == dim ? static_cast<int64_t>(tensors.size())
                                    : like.sizes[at < dim ? d : d - 1]),
                "there are too many dimensions");
  }
  HIL_TRY(give_shape(ctx, out, shape));
  const size_t axis = unsigned_of(dim);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Slab slab{leading(out, axis), 1, trailing(out, axis)};
    move_slab(piece_of(tensors, i), 0, 1, 1, out, i, tensors.size(), 1, slab);
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::stack.out", portable_stack);

Error portable_select_scatter(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& src = call.tensor(1);
  const int64_t dim = call.integer(2);
  int64_t index = call.integer(3);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(give_shape_of(ctx, out, self));
  HIL_TRY(require_same_order(ctx, {&self, &src, &out}));
  HIL_REQUIRE(self.rank >= 1, "self has no dimension");
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  const int64_t size = self.sizes[axis];
  if (index < 0) index += size;
  HIL_REQUIRE(index >= 0 && index < size, "the index is not within the dimension");
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, src, kAll));
  Shape shape;
  for (size_t i = 0; i < self.rank; ++i) {
    if (i != axis) shape.add(self.sizes[i]);
  }
  HIL_REQUIRE(has_shape(src, shape), "src is not one place of the dimension");
  copy_bytes(out.data, self.data, self.nbytes);
  const Slab slab{leading(self, axis), 1, trailing(self, axis)};
  move_slab(src, 0, 1, 1, out, unsigned_of(index), unsigned_of(size), 1, slab);
  return Error::Ok;
}
HIL_OPERATOR("aten::select_scatter.out", portable_select_scatter);

Error portable_slice_scatter(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& src = call.tensor(1);
  const int64_t dim = call.integer(2);
  Tensor& out = call.tensor(6);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(give_shape_of(ctx, out, self));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  if (self.numel == 0) return Error::Ok;
  HIL_REQUIRE(self.rank >= 1, "self has no dimension");
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  Range range(0, 0, 0, 1);
  int64_t step;
  HIL_TRY(slice_of(call, 3, self.sizes[axis], &range, &step));
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, src, kAll));
  Shape shape = Shape::of(self);
  shape.sizes[axis] = range.count;
  HIL_REQUIRE(has_shape(src, shape), "src is not the slice of the dimension");
  copy_bytes(out.data, self.data, self.nbytes);
  const size_t count = unsigned_of(range.count);
  const Slab slab{leading(self, axis), count, trailing(self, axis)};
  move_slab(src, 0, count, 1, out, unsigned_of(range.start), unsigned_of(self.sizes[axis]),
            unsigned_of(step), slab);
  return Error::Ok;
}
HIL_OPERATOR("aten::slice_scatter.out", portable_slice_scatter);

}  // namespace hil
