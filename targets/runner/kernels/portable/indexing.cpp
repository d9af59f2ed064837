// Elements at places that a tensor names.
#include "kernels/operator.h"
#include "kernels/portable/arithmetic.h"
#include "kernels/portable/moving.h"
#include "kernels/portable/operands.h"

namespace hil {

namespace {

constexpr TypeSet kPlaces = only(ScalarType::Int) | only(ScalarType::Long);

/// The places of gather and scatter: a tensor of self's rank that is no larger than self but along
/// the dimension.
Error require_places(KernelContext& ctx, const Tensor& self, size_t axis, const Tensor& index) {
  HIL_TRY(require_type(ctx, index, only(ScalarType::Long)));
  HIL_REQUIRE(index.numel == 0 || rank_of(self) == rank_of(index), "index has another rank");
  for (size_t d = 0; d < rank_of(self); ++d) {
    if (d == axis) continue;
    const int64_t own = d < rank_of(index) ? extent(index, d) : 1;
    HIL_REQUIRE(own <= extent(self, d), "index is larger than self");
  }
  for (size_t i = 0; i < index.numel; ++i) {
    const int64_t place = index.as<int64_t>()[i];
    HIL_REQUIRE(place >= 0 && place < extent(self, axis), "a place is not within the dimension");
  }
  return Error::Ok;
}

/// Calls each(flat place in index, place in self, place in `other`) for every place of index.
/// Tensors of any dim order are taken for plain ones, as ExecuTorch takes them.
template <typename Each>
void for_each_place(const Tensor& index, const Tensor& self, const Tensor& other, size_t axis,
                    Each each) {
  const Steps in = plain_steps(self), beside = plain_steps(other);
  for (size_t i = 0; i < index.numel; ++i) {
    size_t rest = i;
    int64_t from = 0, next = 0;
    for (size_t d = index.rank; d-- > 0;) {
      const size_t width = static_cast<size_t>(index.sizes[d]);
      const int64_t at = static_cast<int64_t>(rest % width);
      rest /= width;
      if (d < other.rank) next += at * beside.of[d];
      if (d < self.rank) from += (d == axis ? index.as<int64_t>()[i] : at) * in.of[d];
    }
    each(i, static_cast<size_t>(from), static_cast<size_t>(next));
  }
}

/// out[place] = out[place] + value, in the element type.
void add_element(ScalarType type, const uint8_t* value, uint8_t* target) {
  if (is_bool(type)) {
    *target = *target != 0 || *value != 0 ? 1 : 0;
  } else if (type == ScalarType::Double) {
    *reinterpret_cast<double*>(target) += *reinterpret_cast<const double*>(value);
  } else if (is_float(type)) {
    const Reader<float> read = reader_of<float>(type);
    writer_of<float>(type)(target, read(target) + read(value));
  } else {
    const Reader<int64_t> read = reader_of<int64_t>(type);
    writer_of<int64_t>(type)(target, Plus()(read(target), read(value)));
  }
}

/// What scatter and scatter_add ask of (self, dim, index, src, out).
Error require_scatter(KernelContext& ctx, const Tensor& self, int64_t dim, const Tensor& index,
                      const Tensor& src, const Tensor& out, size_t* axis) {
  HIL_TRY(require_same_type(ctx, {&self, &src, &out}));
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, index, only(ScalarType::Long)));
  HIL_TRY(require_dim(ctx, self, dim, axis));
  HIL_TRY(give_shape_of(ctx, out, self));
  if (index.numel == 0) return Error::Ok;
  HIL_REQUIRE(rank_of(self) == rank_of(src), "src has another rank");
  HIL_TRY(require_places(ctx, self, *axis, index));
  for (size_t d = 0; d < rank_of(self); ++d) {
    HIL_REQUIRE(extent(index, d) <= extent(src, d), "index is larger than src");
  }
  return Error::Ok;
}

Error scatter_from(KernelContext& ctx, Args args, bool adds) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1);
  const Tensor& index = call.tensor(2);
  const Tensor& src = call.tensor(3);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  size_t axis;
  HIL_TRY(require_scatter(ctx, self, dim, index, src, out, &axis));
  if (adds) {
    HIL_TRY(require_same_order(ctx, {&self, &src, &out}));
    HIL_TRY(require_plain(ctx, index));
  }
  copy_bytes(out.data, self.data, self.nbytes);
  const size_t size = element_size(self.type);
  for_each_place(index, out, src, axis, [&](size_t, size_t to, size_t from) {
    uint8_t* const target = out.data + to * size;
    const uint8_t* const value = src.data + from * size;
    if (adds) {
      add_element(out.type, value, target);
    } else {
      copy_bytes(target, value, size);
    }
  });
  return Error::Ok;
}

/// The tensors that index self, null for a dimension that is taken whole.
struct Index {
  Span<Value* const> list;

  size_t size() const { return list.size(); }
  const Tensor* operator[](size_t i) const {
    return list[i] == nullptr ? nullptr : &list[i]->tensor;
  }
};

bool is_mask(const Tensor& t) { return is_in(t.type, kBoolOrByte); }

size_t count_true(const Tensor& mask) {
  size_t count = 0;
  for (size_t i = 0; i < mask.numel; ++i) count += mask.data[i] != 0 ? 1 : 0;
  return count;
}

/// Advanced indexing: which dimensions of self the index tensors stand for, and the shape of what
/// they pick.
class Picks {
 public:
  /// InvalidArgument when the tensors do not index self.
  Error read(KernelContext& ctx, const Tensor& self, Index index);

  bool whole() const { return blocks_ == 0; }  // nothing is indexed
  const Shape& shape() const { return shape_; }
  /// Where in self the element of a place of the shape is, as if it were plain; InvalidArgument for
  /// a place beyond a dimension.
  Error place(KernelContext& ctx, size_t flat, size_t* out) const;

 private:
  Error read_extents(KernelContext& ctx);
  Error broadcast(KernelContext& ctx, const Tensor& t);
  Error shape_up(KernelContext& ctx);
  int64_t value_of(const Tensor& t, const int64_t* at) const;

  const Tensor* self_ = nullptr;
  Index index_;
  size_t blocks_ = 0, indexed_ = 0, whole_dims_ = 0, first_ = 0;  // first_: leading whole dims
  Shape common_;                                                  // of the index tensors
  Shape shape_;
};

Error Picks::read(KernelContext& ctx, const Tensor& self, Index index) {
  self_ = &self;
  index_ = index;
  HIL_REQUIRE(index.size() <= self.rank, "more dimensions are indexed than self has");
  HIL_TRY(read_extents(ctx));
  HIL_REQUIRE(indexed_ + whole_dims_ <= self.rank, "more dimensions are indexed than self has");
  return whole() ? Error::Ok : shape_up(ctx);
}

Error Picks::read_extents(KernelContext& ctx) {
  size_t dim = 0;
  bool in_block = false;
  for (size_t i = 0; i < index_.size(); ++i) {
    const Tensor* t = index_[i];
    if (t == nullptr) {
      in_block = false;
      ++whole_dims_;
      if (blocks_ == 0) ++first_;
      ++dim;
      continue;
    }
    HIL_TRY(require_type(ctx, *t, kPlaces | kBoolOrByte));
    blocks_ += in_block ? 0 : 1;
    in_block = true;
    const size_t width = is_mask(*t) ? t->rank : 1;
    HIL_REQUIRE(width != 0, "a mask has no dimension");
    for (size_t d = 0; is_mask(*t) && d < width; ++d) {
      HIL_REQUIRE(dim + d < self_->rank && t->sizes[d] == self_->sizes[dim + d],
                  "a mask does not have the shape of its dimensions");
    }
    indexed_ += width;
    dim += width;
    HIL_TRY(broadcast(ctx, *t));
  }
  return Error::Ok;
}

/// Joins an index tensor's shape to the common one. A mask is as long as it has true elements.
Error Picks::broadcast(KernelContext& ctx, const Tensor& t) {
  const size_t rank = is_mask(t) ? 1 : t.rank;
  const size_t joined = rank > common_.rank ? rank : common_.rank;
  Shape shape;
  shape.rank = joined;
  for (size_t i = 0; i < joined; ++i) {
    const int64_t own = i >= rank    ? 1
                        : is_mask(t) ? static_cast<int64_t>(count_true(t))
                                     : t.sizes[rank - 1 - i];
    const int64_t other = i < common_.rank ? common_.sizes[common_.rank - 1 - i] : 1;
    HIL_REQUIRE(own == other || own == 1 || other == 1, "the index tensors do not broadcast");
    shape.sizes[joined - 1 - i] = other == 1 ? own : other;
  }
  common_ = shape;
  return Error::Ok;
}

/// Neighbouring index tensors leave their shape where they stand, others put it first.
Error Picks::shape_up(KernelContext& ctx) {
  if (blocks_ != 1) first_ = 0;
  size_t dim = 0;
  bool fits = true;
  for (; dim < first_; ++dim) fits = fits && shape_.add(self_->sizes[dim]);
  for (size_t i = 0; i < common_.rank; ++i) fits = fits && shape_.add(common_.sizes[i]);
  if (blocks_ == 1) {
    dim += indexed_;
  } else {
    for (size_t i = 0; i < index_.size(); ++i) {
      const Tensor* t = index_[i];
      if (t == nullptr) fits = fits && shape_.add(self_->sizes[dim]);
      dim += t != nullptr && is_mask(*t) ? t->rank : 1;
    }
  }
  for (; dim < self_->rank; ++dim) fits = fits && shape_.add(self_->sizes[dim]);
  HIL_REQUIRE(fits, "there are too many dimensions");
  return Error::Ok;
}

/// The place that an integer index names; `at` is a place of the common shape.
int64_t Picks::value_of(const Tensor& t, const int64_t* at) const {
  const Steps steps = steps_of(t);
  int64_t flat = 0;
  for (size_t d = 0; d < t.rank; ++d) {
    if (t.sizes[d] != 1) flat += at[common_.rank - t.rank + d] * steps.of[d];
  }
  return reader_of<int64_t>(t.type)(t.data + static_cast<size_t>(flat) * element_size(t.type));
}

Error Picks::place(KernelContext& ctx, size_t flat, size_t* out) const {
  int64_t at[kMaxRank] = {};
  for (size_t d = shape_.rank; d-- > 0;) {
    const size_t width = static_cast<size_t>(shape_.sizes[d]);
    at[d] = static_cast<int64_t>(flat % width);
    flat /= width;
  }
  const Steps steps = plain_steps(*self_);
  const int64_t* const common = at + first_;
  // Where the next dimension that is taken whole stands in the shape.
  size_t next = blocks_ == 1 ? 0 : common_.rank, dim = 0;
  int64_t place = 0;
  for (size_t i = 0; dim < self_->rank; ++i) {
    const Tensor* t = i < index_.size() ? index_[i] : nullptr;
    if (t == nullptr) {
      if (blocks_ == 1 && next == first_) next += common_.rank;
      HIL_REQUIRE(next < kMaxRank, "there are too many dimensions");
      place += at[next++] * steps.of[dim++];
    } else if (is_mask(*t)) {
      const int64_t wanted = count_true(*t) == 1 ? 0 : common[common_.rank - 1];
      size_t element = 0;
      for (int64_t seen = -1; element < t->numel; ++element) {
        if (t->data[element] != 0 && ++seen == wanted) break;
      }
      for (size_t d = t->rank; d-- > 0;) {
        const size_t width = static_cast<size_t>(t->sizes[d]);
        place += static_cast<int64_t>(element % width) * steps.of[dim + d];
        element /= width;
      }
      dim += t->rank;
    } else {
      const int64_t size = self_->sizes[dim], value = value_of(*t, common);
      const int64_t own = value < 0 ? value + size : value;
      HIL_REQUIRE(own >= 0 && own < size, "a place is not within the dimension");
      place += own * steps.of[dim++];
    }
  }
  *out = static_cast<size_t>(place);
  return Error::Ok;
}

}  // namespace

Error portable_gather(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1);
  const Tensor& index = call.tensor(2);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_type(ctx, self, kAll));
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  HIL_TRY(require_places(ctx, self, axis, index));
  HIL_TRY(give_shape_of(ctx, out, index));
  const size_t size = element_size(self.type);
  if (index.rank == 0 && index.numel != 0) {
    copy_bytes(out.data, self.data + static_cast<size_t>(*index.as<int64_t>()) * size, size);
    return Error::Ok;
  }
  for_each_place(index, self, out, axis, [&](size_t, size_t from, size_t to) {
    copy_bytes(out.data + to * size, self.data + from * size, size);
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::gather.out", portable_gather);

Error portable_scatter_src(KernelContext& ctx, Args args) { return scatter_from(ctx, args, false); }
HIL_OPERATOR("aten::scatter.src_out", portable_scatter_src);

Error portable_scatter_add(KernelContext& ctx, Args args) { return scatter_from(ctx, args, true); }
HIL_OPERATOR("aten::scatter_add.out", portable_scatter_add);

Error portable_scatter_value(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1);
  const Tensor& index = call.tensor(2);
  const Number value = call.number(3);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_type(ctx, self, kAll));
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  HIL_TRY(require_places(ctx, self, axis, index));
  HIL_TRY(give_shape_of(ctx, out, self));
  HIL_REQUIRE(holds(self.type, value), "the value does not fit the element type");
  copy_bytes(out.data, self.data, self.nbytes);
  const size_t size = element_size(self.type);
  for_each_place(index, out, index, axis, [&](size_t, size_t to, size_t) {
    if (value.tag == Tag::Double) {
      writer_of<double>(out.type)(out.data + to * size, value.real);
    } else {
      writer_of<int64_t>(out.type)(out.data + to * size, value.whole);
    }
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::scatter.value_out", portable_scatter_value);

Error portable_index_select(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t dim = call.integer(1);
  const Tensor& index = call.tensor(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  size_t axis;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  HIL_REQUIRE(extent(self, axis) > 0, "the dimension is empty");
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_type(ctx, index, kPlaces));
  HIL_REQUIRE(index.rank <= 1, "index is not a vector");
  HIL_REQUIRE(self.rank != 0 || index.rank == 0 || index.numel == 1,
              "index names more than one place of a scalar");
  const Reader<int64_t> read = reader_of<int64_t>(index.type);
  const size_t width = element_size(index.type);
  for (size_t i = 0; i < index.numel; ++i) {
    const int64_t place = read(index.data + i * width);
    HIL_REQUIRE(place >= 0 && place < extent(self, axis), "a place is not within the dimension");
  }
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(require_plain(ctx, self));
  Shape shape = Shape::of(self);
  if (self.rank != 0) shape.sizes[axis] = static_cast<int64_t>(index.numel);
  HIL_TRY(give_shape(ctx, out, shape));
  const Steps own = plain_steps(self);
  move_each(self, 0, shape, out, [&](size_t d, int64_t i) {
    return (d == axis ? read(index.data + static_cast<size_t>(i) * width) : i) * own.of[d];
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::index_select.out", portable_index_select);

Error portable_embedding(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& weight = call.tensor(0);
  const Tensor& indices = call.tensor(1);
  Tensor& out = call.tensor(5);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(weight.rank == 2, "weight is not a matrix");
  HIL_TRY(require_same_type(ctx, {&weight, &out}));
  HIL_TRY(require_type(ctx, indices, kPlaces));
  Shape shape = Shape::of(indices);
  HIL_REQUIRE(shape.add(weight.sizes[1]), "there are too many dimensions");
  HIL_TRY(give_shape(ctx, out, shape));
  HIL_TRY(require_same_order(ctx, {&weight, &indices, &out}));
  HIL_TRY(require_plain(ctx, weight));
  const size_t row = static_cast<size_t>(weight.sizes[1]) * element_size(weight.type);
  const Reader<int64_t> read = reader_of<int64_t>(indices.type);
  for (size_t i = 0; i < indices.numel; ++i) {
    const int64_t place = read(indices.data + i * element_size(indices.type));
    HIL_REQUIRE(place >= 0 && place < weight.sizes[0], "an index names no row of weight");
    copy_bytes(out.data + i * row, weight.data + static_cast<size_t>(place) * row, row);
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::embedding.out", portable_embedding);

Error portable_index(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Index index{ctx.optional_tensor_list(args, 1)};
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(require_plain(ctx, self));
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_type(ctx, self, kAll));
  Picks picks;
  HIL_TRY(picks.read(ctx, self, index));
  if (picks.whole()) {
    HIL_TRY(give_shape_of(ctx, out, self));
    copy_bytes(out.data, self.data, self.nbytes);
    return Error::Ok;
  }
  HIL_TRY(give_shape(ctx, out, picks.shape()));
  const size_t size = element_size(self.type);
  for (size_t i = 0; i < out.numel; ++i) {
    size_t from = 0;
    HIL_TRY(picks.place(ctx, i, &from));
    copy_bytes(out.data + i * size, self.data + from * size, size);
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::index.Tensor_out", portable_index);

Error portable_index_put(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Index index{ctx.optional_tensor_list(args, 1)};
  const Tensor& values = call.tensor(2);
  const bool adds = call.boolean(3);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&self, &values, &out}));
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_same_order(ctx, {&self, &out}));
  HIL_TRY(require_plain(ctx, self));
  HIL_TRY(give_shape_of(ctx, out, self));
  Picks picks;
  HIL_TRY(picks.read(ctx, self, index));
  const Shape shape = picks.whole() ? Shape::of(self) : picks.shape();
  HIL_REQUIRE(broadcasts_to(values, shape), "values do not broadcast to what is indexed");
  copy_bytes(out.data, self.data, self.nbytes);
  const size_t size = element_size(self.type), added = shape.rank - values.rank;
  const size_t count = self.numel == 0 ? 0 : shape.numel();
  const Steps steps = steps_of(values);
  for (size_t i = 0; i < count; ++i) {
    size_t to = i, rest = i;
    if (!picks.whole()) HIL_TRY(picks.place(ctx, i, &to));
    int64_t from = 0;
    for (size_t d = shape.rank; d-- > 0;) {
      const size_t width = static_cast<size_t>(shape.sizes[d]);
      if (d >= added && values.sizes[d - added] != 1) {
        from += static_cast<int64_t>(rest % width) * steps.of[d - added];
      }
      rest /= width;
    }
    const uint8_t* const value = values.data + static_cast<size_t>(from) * size;
    if (adds) {
      add_element(out.type, value, out.data + to * size);
    } else {
      copy_bytes(out.data + to * size, value, size);
    }
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::index_put.out", portable_index_put);

/// In place, of one vector of places.
Error portable_index_put_into(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  Tensor& self = call.tensor(0);
  const Index index{ctx.optional_tensor_list(args, 1)};
  const Tensor& values = call.tensor(2);
  const bool adds = call.boolean(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(!self.constant, "the target is a constant");
  HIL_TRY(require_same_type(ctx, {&self, &values}));
  HIL_TRY(require_same_order(ctx, {&self, &values}));
  HIL_TRY(require_plain(ctx, self));
  HIL_REQUIRE(!adds, "values cannot be added in place");
  HIL_REQUIRE(index.size() <= self.rank, "more dimensions are indexed than self has");
  const Tensor* places = nullptr;
  size_t axis = 0;
  for (size_t i = 0; i < index.size(); ++i) {
    if (index[i] == nullptr) continue;
    HIL_REQUIRE(places == nullptr, "more than one dimension is indexed in place");
    places = index[i];
    axis = i;
  }
  HIL_REQUIRE(places != nullptr && places->rank == 1, "no vector of places");
  HIL_TRY(require_type(ctx, *places, kPlaces));
  const Reader<int64_t> read = reader_of<int64_t>(places->type);
  const size_t width = element_size(places->type);
  for (size_t i = 0; i < places->numel; ++i) {
    const int64_t place = read(places->data + i * width);
    HIL_REQUIRE(place >= 0 && place < self.sizes[axis], "a place is not within the dimension");
  }
  Shape shape = Shape::of(self);
  shape.sizes[axis] = static_cast<int64_t>(places->numel);
  HIL_REQUIRE(has_shape(values, shape), "values do not have the shape of what is indexed");
  for (size_t i = 0; i < places->numel; ++i) {
    const Slab slab{leading(self, axis), 1, trailing(self, axis)};
    move_slab(values, i, places->numel, 1, self,
              static_cast<size_t>(read(places->data + i * width)),
              static_cast<size_t>(self.sizes[axis]), 1, slab);
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::index_put_", portable_index_put_into);

Error portable_masked_scatter(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& mask = call.tensor(1);
  const Tensor& src = call.tensor(2);
  Tensor& out = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, mask, kBool));
  HIL_TRY(require_same_type(ctx, {&self, &src, &out}));
  HIL_TRY(require_same_order(ctx, {&self, &mask, &out}));
  HIL_TRY(give_broadcast_shape(ctx, out, {&self, &mask}));
  const size_t size = element_size(self.type);
  const Tensor* const in[] = {&self, &mask};
  size_t taken = 0;
  uint8_t* target = out.data;
  for (Broadcast rows(in, 2, out); rows.at_row(); rows.next_row()) {
    for (size_t i = 0; i < rows.width(); ++i, target += size) {
      const bool is_masked = mask.data[rows.offset(1) + i * rows.step(1)] != 0;
      HIL_REQUIRE(!is_masked || taken < src.numel, "src has too few elements");
      copy_bytes(target,
                 is_masked ? src.data + taken * size
                           : self.data + (rows.offset(0) + i * rows.step(0)) * size,
                 size);
      taken += is_masked ? 1 : 0;
    }
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::masked_scatter.out", portable_masked_scatter);

/// The number of elements is known only here: out has to have it.
Error portable_masked_select(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const Tensor& mask = call.tensor(1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, self, kAll));
  HIL_TRY(require_type(ctx, mask, kBool));
  HIL_TRY(require_same_type(ctx, {&self, &out}));
  HIL_TRY(require_same_order(ctx, {&self, &mask, &out}));
  Shape shape, length;
  HIL_REQUIRE(broadcast_shape({&self, &mask}, &shape), "shapes do not broadcast");
  const size_t count =
      self.numel == 0 || mask.numel == 0 ? 0 : count_true(mask) * (shape.numel() / mask.numel);
  length.add(static_cast<int64_t>(count));
  HIL_TRY(give_shape(ctx, out, length));
  if (count == 0) return Error::Ok;
  const size_t size = element_size(self.type);
  const Steps own = steps_of(self), masks = steps_of(mask);
  size_t taken = 0;
  for (size_t i = 0; i < shape.numel(); ++i) {
    size_t rest = i;
    int64_t from = 0, at = 0;
    for (size_t d = shape.rank; d-- > 0;) {
      const int64_t place = static_cast<int64_t>(rest % static_cast<size_t>(shape.sizes[d]));
      rest /= static_cast<size_t>(shape.sizes[d]);
      const size_t own_added = shape.rank - self.rank, mask_added = shape.rank - mask.rank;
      if (d >= own_added && self.sizes[d - own_added] != 1) from += place * own.of[d - own_added];
      if (d >= mask_added && mask.sizes[d - mask_added] != 1) {
        at += place * masks.of[d - mask_added];
      }
    }
    if (mask.data[at] == 0) continue;
    copy_bytes(out.data + taken++ * size, self.data + static_cast<size_t>(from) * size, size);
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::masked_select.out", portable_masked_select);

/// As masked_select: out has to have as many rows as self has elements that are not zero.
Error portable_nonzero(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  Tensor& out = call.tensor(1);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, out, only(ScalarType::Long)));
  HIL_TRY(require_type(ctx, self, kAll));
  const Reader<bool> read = reader_of<bool>(self.type);
  const size_t size = element_size(self.type);
  int64_t count = 0;
  for (size_t i = 0; i < self.numel; ++i) count += read(self.data + i * size) ? 1 : 0;
  Shape shape;
  shape.add(count);
  shape.add(self.rank);
  HIL_TRY(give_shape(ctx, out, shape));
  int64_t* target = out.as<int64_t>();
  for (size_t i = 0; i < self.numel; ++i) {
    if (!read(self.data + i * size)) continue;
    size_t rest = i;
    for (size_t d = self.rank; d-- > 0;) {
      target[d] = static_cast<int64_t>(rest % static_cast<size_t>(self.sizes[d]));
      rest /= static_cast<size_t>(self.sizes[d]);
    }
    target += self.rank;
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::nonzero.out", portable_nonzero);

Error portable_repeat_interleave(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& repeats = call.tensor(0);
  const int64_t wanted = call.integer_or(1, -1);
  Tensor& out = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, repeats, kPlaces));
  HIL_REQUIRE(repeats.rank == 1, "repeats is not a vector");
  HIL_TRY(require_same_type(ctx, {&repeats, &out}));
  const Reader<int64_t> read = reader_of<int64_t>(repeats.type);
  const Writer<int64_t> write = writer_of<int64_t>(out.type);
  const size_t size = element_size(out.type);
  int64_t total = 0;
  for (size_t i = 0; i < repeats.numel; ++i) {
    const int64_t times = read(repeats.data + i * size);
    HIL_REQUIRE(times >= 0 && times <= INT32_MAX, "a number of repeats is negative");
    total += times;
  }
  HIL_REQUIRE(call.is_none(1) || wanted == total, "the output size is not the sum of the repeats");
  HIL_TRY(require_same_order(ctx, {&repeats, &out}));
  Shape shape;
  shape.add(total);
  HIL_TRY(give_shape(ctx, out, shape));
  uint8_t* target = out.data;
  for (size_t i = 0; i < repeats.numel; ++i) {
    for (int64_t n = read(repeats.data + i * size); n > 0; --n, target += size) {
      write(target, static_cast<int64_t>(i));
    }
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::repeat_interleave.Tensor_out", portable_repeat_interleave);

}  // namespace hil
