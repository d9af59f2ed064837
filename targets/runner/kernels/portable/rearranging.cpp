// Operators that put elements in another order: a source for each place of the output.
#include "kernels/operator.h"
#include "kernels/portable/moving.h"

namespace hil {

namespace {

/// Elements of an offset that a dimension has no more to give: repeated from the start.
Error require_same(KernelContext& ctx, const Tensor& self, const Tensor& out) {
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  return require_type(ctx, self, kAll | only(ScalarType::UInt16));
}

Error require_both_plain(KernelContext& ctx, const Tensor& self, const Tensor& out) {
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  return require_plain(ctx, self);
}

/// Dimensions dim0 and dim1 exchanged.
Error transpose(KernelContext& ctx, const Tensor& self, size_t dim0, size_t dim1, Tensor& out) {
  Shape shape = Shape::of(self);
  Steps steps = steps_of(self);
  if (self.rank != 0) {
    shape.sizes[dim0] = self.sizes[dim1];
    shape.sizes[dim1] = self.sizes[dim0];
    const int64_t step = steps.of[dim0];
    steps.of[dim0] = steps.of[dim1];
    steps.of[dim1] = step;
  }
  HIL_TRY(give_shape(ctx, out, shape));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  move_by_steps(self, 0, shape, steps.of, out);
  return Error::Ok;
}

/// Where an index beyond either end of a dimension is taken from.
int64_t reflected(int64_t i, int64_t size) { return i < 0 ? -i : i < size ? i : 2 * size - i - 2; }
int64_t replicated(int64_t i, int64_t size) { return i < 0 ? 0 : i < size ? i : size - 1; }

/// Padding of the last `dims` dimensions; `padding` is that of the last one first.
Error pad(KernelContext& ctx, Args args, size_t dims, bool reflects) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints padding = call.ints(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(padding.size() == 2 * dims, "there is not a padding for each side");
  HIL_REQUIRE(self.rank == dims + 1 || self.rank == dims + 2, "self has another rank");
  HIL_TRY(require_same(ctx, self, out));
  if (reflects) HIL_TRY(require_both_plain(ctx, self, out));
  Shape shape = Shape::of(self);
  for (size_t i = 0; i < dims; ++i) {
    int64_t& size = shape.sizes[self.rank - 1 - i];
    const int64_t before = padding[2 * i], after = padding[2 * i + 1];
    HIL_REQUIRE(size + before + after >= 0, "the padding leaves nothing");
    HIL_REQUIRE(!reflects || (before < size && after < size), "the padding is wider than self");
    size += before + after;
    // ExecuTorch aborts where a place is taken from beyond the tensor.
    const int64_t own = self.sizes[self.rank - 1 - i];
    HIL_REQUIRE(size == 0 || own > 0, "there is nothing to pad with");
  }
  HIL_TRY(give_shape(ctx, out, shape));
  const Steps steps = plain_steps(self);
  const size_t first = self.rank - dims;
  move_each(self, 0, shape, out, [&](size_t dim, int64_t i) {
    if (dim < first) return i * steps.of[dim];
    const int64_t from = i - padding[2 * (self.rank - 1 - dim)], size = self.sizes[dim];
    return (reflects ? reflected(from, size) : replicated(from, size)) * steps.of[dim];
  });
  return Error::Ok;
}

}  // namespace

Error portable_as_strided_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints size = call.ints(1), stride = call.ints(2);
  const int64_t first = call.integer_or(3, 0);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same(ctx, self, out));
  HIL_REQUIRE(size.size() == stride.size(), "there is not a stride for each dimension");
  HIL_REQUIRE(first >= 0, "the offset is negative");
  Shape shape;
  int64_t steps[kMaxRank] = {}, last = first;
  for (size_t i = 0; i < size.size(); ++i) {
    HIL_REQUIRE(shape.add(size[i]), "there are too many dimensions");
    HIL_REQUIRE(stride[i] >= 0 && stride[i] <= INT32_MAX, "a stride is negative");
    steps[i] = stride[i];
  }
  HIL_TRY(give_shape(ctx, out, shape));
  for (size_t i = 0; i < size.size(); ++i) last += (size[i] - 1) * stride[i];
  HIL_REQUIRE(out.numel == 0 || last < static_cast<int64_t>(self.numel),
              "the strides lead out of self");
  HIL_TRY(require_both_plain(ctx, self, out));
  if (self.numel != 0) move_by_steps(self, static_cast<size_t>(first), shape, steps, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::as_strided_copy.out", portable_as_strided_copy);

Error portable_diagonal_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t offset = call.integer(1), dim1 = call.integer(2), dim2 = call.integer(3);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same(ctx, self, out));
  HIL_REQUIRE(self.rank >= 2, "self has fewer than two dimensions");
  size_t row, column;
  HIL_TRY(require_dim(ctx, self, dim1, &row));
  HIL_TRY(require_dim(ctx, self, dim2, &column));
  HIL_REQUIRE(row != column, "a dimension is named twice");
  HIL_TRY(require_both_plain(ctx, self, out));
  const int64_t down = offset < 0 ? -offset : 0, right = offset > 0 ? offset : 0;
  const int64_t rows = self.sizes[row] - down, columns = self.sizes[column] - right;
  const int64_t length = rows <= 0 || columns <= 0 ? 0 : rows < columns ? rows : columns;
  const Steps own = steps_of(self);
  Shape shape;
  int64_t steps[kMaxRank];
  for (size_t i = 0; i < self.rank; ++i) {
    if (i == row || i == column) continue;
    steps[shape.rank] = own.of[i];
    shape.add(self.sizes[i]);
  }
  steps[shape.rank] = own.of[row] + own.of[column];
  shape.add(length);
  HIL_TRY(give_shape(ctx, out, shape));
  const int64_t first = down * own.of[row] + right * own.of[column];
  move_by_steps(self, static_cast<size_t>(first), shape, steps, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::diagonal_copy.out", portable_diagonal_copy);

Error portable_expand_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints size = call.ints(1);
  const bool implicit = call.boolean(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(!implicit, "an implicit expansion is not supported");
  HIL_REQUIRE(size.size() >= self.rank, "fewer dimensions than self has");
  HIL_TRY(require_same(ctx, self, out));
  const size_t added = size.size() - self.rank;
  const Steps own = steps_of(self);
  Shape shape;
  int64_t steps[kMaxRank] = {};
  for (size_t i = 0; i < size.size(); ++i) {
    HIL_REQUIRE(i < kMaxRank, "there are too many dimensions");
    const int64_t extent_of = i < added ? 1 : self.sizes[i - added];
    const int64_t wanted = size[i] == -1 && i >= added ? extent_of : size[i];
    HIL_REQUIRE(wanted >= 0 && (extent_of == 1 || wanted == extent_of),
                "a dimension cannot be expanded to the size");
    if (i >= added && extent_of != 1) steps[i] = own.of[i - added];
    shape.add(wanted);
  }
  HIL_TRY(give_shape(ctx, out, shape));
  HIL_TRY(require_both_plain(ctx, self, out));
  move_by_steps(self, 0, shape, steps, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::expand_copy.out", portable_expand_copy);

Error portable_repeat(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints repeats = call.ints(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(repeats.size() >= self.rank, "fewer dimensions than self has");
  HIL_TRY(require_both_plain(ctx, self, out));
  HIL_TRY(require_same(ctx, self, out));
  const size_t added = repeats.size() - self.rank;
  Shape shape;
  for (size_t i = 0; i < repeats.size(); ++i) {
    HIL_REQUIRE(repeats[i] >= 0, "a number of repeats is negative");
    HIL_REQUIRE(shape.add(repeats[i] * (i < added ? 1 : self.sizes[i - added])),
                "there are too many dimensions");
  }
  HIL_TRY(give_shape(ctx, out, shape));
  const Steps own = plain_steps(self);
  move_each(self, 0, shape, out, [&](size_t dim, int64_t i) {
    return dim < added ? 0 : i % self.sizes[dim - added] * own.of[dim - added];
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::repeat.out", portable_repeat);

Error portable_permute_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints dims = call.ints(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(dims.size() == self.rank, "there is not a place for each dimension");
  HIL_TRY(require_same(ctx, self, out));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  const Steps own = plain_steps(self);
  Shape shape;
  int64_t steps[kMaxRank];
  uint32_t seen = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    size_t from;
    HIL_TRY(require_dim(ctx, self, dims[i], &from));
    HIL_REQUIRE((seen >> from & 1) == 0, "a dimension is named twice");
    seen |= 1u << from;
    steps[i] = own.of[from];
    shape.add(self.sizes[from]);
  }
  HIL_TRY(give_shape(ctx, out, shape));
  move_by_steps(self, 0, shape, steps, out);
  return Error::Ok;
}
HIL_OPERATOR("aten::permute_copy.out", portable_permute_copy);

Error portable_transpose_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim0 = call.integer(1), dim1 = call.integer(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same(ctx, self, out));
  size_t first, second;
  HIL_TRY(require_dim(ctx, self, dim0, &first));
  HIL_TRY(require_dim(ctx, self, dim1, &second));
  return transpose(ctx, self, first, second, out);
}
HIL_OPERATOR("aten::transpose_copy.int_out", portable_transpose_copy);

Error portable_t_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  Tensor& out = call.tensor(1);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same(ctx, self, out));
  HIL_REQUIRE(self.rank <= 2, "self has more than two dimensions");
  if (self.rank == 2) {
    HIL_TRY(require_both_plain(ctx, self, out));
    return transpose(ctx, self, 1, 0, out);
  }
  HIL_TRY(give_shape_of(ctx, out, self));
  copy_bytes(out.data, self.data, self.nbytes);
  return Error::Ok;
}
HIL_OPERATOR("aten::t_copy.out", portable_t_copy);

Error portable_flip(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints dims = call.ints(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same(ctx, self, out));
  HIL_TRY(give_shape_of(ctx, out, self));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  uint32_t flipped = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    size_t dim;
    HIL_TRY(require_dim(ctx, self, dims[i], &dim));
    HIL_REQUIRE((flipped >> dim & 1) == 0, "a dimension is named twice");
    flipped |= 1u << dim;
  }
  const Steps own = plain_steps(self);
  move_each(self, 0, Shape::of(self), out, [&](size_t dim, int64_t i) {
    return ((flipped >> dim & 1) != 0 ? self.sizes[dim] - 1 - i : i) * own.of[dim];
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::flip.out", portable_flip);

Error portable_roll(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints shifts = call.ints(1), dims = call.ints(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(give_shape_of(ctx, out, self));
  HIL_REQUIRE(self.rank >= 1, "self has no dimension");
  HIL_REQUIRE(shifts.size() == dims.size() && dims.size() != 0,
              "there is not a shift for each dimension");
  HIL_TRY(require_same(ctx, self, out));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  if (self.numel == 0) return Error::Ok;
  int64_t shift[kMaxRank] = {};
  for (size_t i = 0; i < dims.size(); ++i) {
    size_t dim;
    HIL_TRY(require_dim(ctx, self, dims[i], &dim));
    shift[dim] = (shift[dim] + shifts[i] % self.sizes[dim]) % self.sizes[dim];
  }
  const Steps own = plain_steps(self);
  move_each(self, 0, Shape::of(self), out, [&](size_t dim, int64_t i) {
    const int64_t size = self.sizes[dim];
    return (i + size - shift[dim]) % size * own.of[dim];
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::roll.out", portable_roll);

Error portable_unfold_copy(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1), size = call.integer(2), step = call.integer(3);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, out, kAll));
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  HIL_REQUIRE(self.rank != 0, "self has no dimension");
  HIL_REQUIRE(size >= 0 && size <= self.sizes[axis], "the size is not within the dimension");
  HIL_REQUIRE(step > 0, "the step is not positive");
  Shape shape = Shape::of(self);
  shape.sizes[axis] = (self.sizes[axis] - size + step) / step;
  HIL_REQUIRE(shape.add(size), "there are too many dimensions");
  HIL_TRY(give_shape(ctx, out, shape));
  HIL_TRY(require_both_plain(ctx, self, out));
  const Steps own = plain_steps(self);
  move_each(self, 0, shape, out, [&](size_t d, int64_t i) {
    return d == self.rank ? i * own.of[axis] : i * own.of[d] * (d == axis ? step : 1);
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::unfold_copy.out", portable_unfold_copy);

Error portable_pixel_shuffle(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t factor = call.integer(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same(ctx, self, out));
  HIL_REQUIRE(self.rank >= 3 && out.rank >= 3, "self or out is no image");
  HIL_REQUIRE(factor > 0 && factor < 32768, "the factor is out of range");
  const size_t channels = self.rank - 3u, rows = self.rank - 2u, columns = self.rank - 1u;
  HIL_REQUIRE(self.sizes[channels] % (factor * factor) == 0,
              "the channels do not divide by the factor's square");
  HIL_TRY(require_both_plain(ctx, self, out));
  Shape shape = Shape::of(self);
  shape.sizes[channels] /= factor * factor;
  shape.sizes[rows] *= factor;
  shape.sizes[columns] *= factor;
  HIL_TRY(give_shape(ctx, out, shape));
  const Steps own = plain_steps(self);
  move_each(self, 0, shape, out, [&](size_t dim, int64_t i) {
    if (dim < channels) return i * own.of[dim];
    if (dim == channels) return i * factor * factor * own.of[channels];
    const int64_t share = dim == rows ? factor : 1;
    return i / factor * own.of[dim] + i % factor * share * own.of[channels];
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::pixel_shuffle.out", portable_pixel_shuffle);

Error portable_pixel_unshuffle(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t factor = call.integer(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same(ctx, self, out));
  HIL_REQUIRE(self.rank >= 3 && out.rank >= 3, "self or out is no image");
  const size_t channels = self.rank - 3u, rows = self.rank - 2u, columns = self.rank - 1u;
  HIL_REQUIRE(factor > 0 && factor < 32768 && self.sizes[rows] % factor == 0 &&
                  self.sizes[columns] % factor == 0,
              "rows or columns do not divide by the factor");
  Shape shape = Shape::of(self);
  shape.sizes[channels] *= factor * factor;
  shape.sizes[rows] /= factor;
  shape.sizes[columns] /= factor;
  HIL_TRY(give_shape(ctx, out, shape));
  const Steps own = plain_steps(self);
  move_each(self, 0, shape, out, [&](size_t dim, int64_t i) {
    if (dim < channels) return i * own.of[dim];
    if (dim != channels) return i * factor * own.of[dim];
    return i / (factor * factor) * own.of[channels] + i / factor % factor * own.of[rows] +
           i % factor;
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::pixel_unshuffle.out", portable_pixel_unshuffle);

Error portable_tril(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t diagonal = call.integer(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same(ctx, self, out));
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_REQUIRE(self.rank >= 2, "self has fewer than two dimensions");
  HIL_TRY(give_shape_of(ctx, out, self));
  HIL_TRY(require_both_plain(ctx, self, out));
  const size_t size = element_size(self.type);
  const int64_t rows = self.sizes[self.rank - 2], columns = self.sizes[self.rank - 1];
  for (size_t i = 0; i < self.numel; ++i) {
    const int64_t at = static_cast<int64_t>(i), row = at / columns % rows;
    const bool is_kept = at % columns <= row + diagonal;
    for (size_t k = i * size; k < (i + 1) * size; ++k) out.data[k] = is_kept ? self.data[k] : 0;
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::tril.out", portable_tril);

Error portable_reflection_pad1d(KernelContext& ctx, Args args) { return pad(ctx, args, 1, true); }
HIL_OPERATOR("aten::reflection_pad1d.out", portable_reflection_pad1d);

Error portable_reflection_pad2d(KernelContext& ctx, Args args) { return pad(ctx, args, 2, true); }
HIL_OPERATOR("aten::reflection_pad2d.out", portable_reflection_pad2d);

Error portable_reflection_pad3d(KernelContext& ctx, Args args) { return pad(ctx, args, 3, true); }
HIL_OPERATOR("aten::reflection_pad3d.out", portable_reflection_pad3d);

Error portable_replication_pad1d(KernelContext& ctx, Args args) { return pad(ctx, args, 1, false); }
HIL_OPERATOR("aten::replication_pad1d.out", portable_replication_pad1d);

Error portable_replication_pad2d(KernelContext& ctx, Args args) { return pad(ctx, args, 2, false); }
HIL_OPERATOR("aten::replication_pad2d.out", portable_replication_pad2d);

Error portable_replication_pad3d(KernelContext& ctx, Args args) { return pad(ctx, args, 3, false); }
HIL_OPERATOR("aten::replication_pad3d.out", portable_replication_pad3d);

Error portable_constant_pad_nd(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Ints padding = call.ints(1);
  const Number value = call.number(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same(ctx, self, out));
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_REQUIRE(self.rank == out.rank, "out has another number of dimensions");
  const size_t padded = padding.size() / 2;
  HIL_REQUIRE(padding.size() % 2 == 0 && padded <= self.rank,
              "there is not a padding for each side");
  Shape shape = Shape::of(self);
  int64_t before[kMaxRank] = {};
  for (size_t i = 0; i < padded; ++i) {
    const size_t dim = self.rank - 1 - i;
    HIL_REQUIRE(padding[2 * i] >= 0 && padding[2 * i + 1] >= 0, "a padding is negative");
    before[dim] = padding[2 * i];
    shape.sizes[dim] += padding[2 * i] + padding[2 * i + 1];
  }
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(give_shape(ctx, out, shape));
  HIL_REQUIRE(holds(self.type, value), "the value does not fit the element type");
  // The value's bytes, then each row of self into its place.
  uint64_t element = 0;
  uint8_t* const bytes = reinterpret_cast<uint8_t*>(&element);
  if (value.tag == Tag::Double) {
    writer_of<double>(self.type)(bytes, value.real);
  } else {
    writer_of<int64_t>(self.type)(bytes, value.whole);
  }
  const size_t size = element_size(self.type);
  for (size_t i = 0; i < out.numel; ++i) copy_bytes(out.data + i * size, bytes, size);
  if (self.rank == 0) {
    copy_bytes(out.data, self.data, size);
    return Error::Ok;
  }
  const Steps to = plain_steps(shape);
  const size_t width = static_cast<size_t>(self.sizes[self.rank - 1]);
  for (size_t row = 0; width != 0 && row < self.numel / width; ++row) {
    size_t rest = row;
    int64_t target = before[self.rank - 1];
    for (size_t dim = self.rank - 1; dim-- > 0;) {
      const size_t extent_of = static_cast<size_t>(self.sizes[dim]);
      target += (static_cast<int64_t>(rest % extent_of) + before[dim]) * to.of[dim];
      rest /= extent_of;
    }
    copy_bytes(out.data + static_cast<size_t>(target) * size, self.data + row * width * size,
               width * size);
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::constant_pad_nd.out", portable_constant_pad_nd);

}  // namespace hil
