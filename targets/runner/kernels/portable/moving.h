// Elements that are moved from one tensor to another, and converted where the types differ.
#pragma once

#include "kernels/bytes.h"
#include "kernels/portable/call.h"

namespace hil {

/// Moves single elements, or neighbours.
class Mover {
 public:
  /// `cut`: a float is made an integer, before that is made a bool.
  Mover(ScalarType from, ScalarType to, bool cut)
      : same_(from == to),
        in_size_(element_size(from)),
        out_size_(element_size(to)),
        read_real_(is_float(from) && !(cut && is_bool(to) && is_in(from, kWideFloats))
                       ? reader_of<double>(from)
                       : nullptr),
        read_whole_(reader_of<int64_t>(from)),
        write_real_(writer_of<double>(to)),
        write_whole_(writer_of<int64_t>(to)) {}

  void move(const uint8_t* in, uint8_t* out) const {
    if (same_) {
      copy_element(in, out);
    } else if (read_real_ != nullptr) {
      write_real_(out, read_real_(in));
    } else {
      write_whole_(out, read_whole_(in));
    }
  }

  void move_run(const uint8_t* in, uint8_t* out, size_t count) const {
    if (same_) {
      copy_bytes(out, in, count * out_size_);
      return;
    }
    for (size_t i = 0; i < count; ++i) move(in + i * in_size_, out + i * out_size_);
  }

  /// Moves elements that are `step` apart, forwards, backwards or not at all, to neighbours.
  void move_row(const uint8_t* in, ptrdiff_t step, uint8_t* out, size_t count) const {
    if (step == 1) {
      move_run(in, out, count);
    } else if (same_ && in_size_ == sizeof(float)) {
      move_words(in, step, out, count);
    } else {
      const ptrdiff_t apart = step * static_cast<ptrdiff_t>(in_size_);
      for (size_t i = 0; i < count; ++i, out += out_size_) {
        move(in + static_cast<ptrdiff_t>(i) * apart, out);
      }
    }
  }

  size_t in_size() const { return in_size_; }
  size_t out_size() const { return out_size_; }

 private:
  void copy_element(const uint8_t* in, uint8_t* out) const {
    for (size_t i = 0; i < out_size_; ++i) out[i] = in[i];
  }

  static void move_words(const uint8_t* in, ptrdiff_t step, uint8_t* out, size_t count) {
    const auto* source = reinterpret_cast<const uint32_t*>(in);
    auto* target = reinterpret_cast<uint32_t*>(out);
    for (size_t i = 0; i < count; ++i) target[i] = source[static_cast<ptrdiff_t>(i) * step];
  }

  bool same_;
  size_t in_size_, out_size_;
  Reader<double> read_real_;
  Reader<int64_t> read_whole_;
  Writer<double> write_real_;
  Writer<int64_t> write_whole_;
};

/// The steps of a shape whose elements lie as they are counted.
Steps plain_steps(const Shape& shape);
inline Steps plain_steps(const Tensor& t) { return plain_steps(Shape::of(t)); }

/// out, as it lies in memory, gets for each index of `shape` in logical order the element of `in`
/// at `first` and the sum of offset(dimension, place), in elements.
template <typename Offset>
void move_each(const Tensor& in, size_t first, const Shape& shape, Tensor& out, Offset offset) {
  const Mover mover(in.type, out.type, true);
  int64_t index[kMaxRank] = {};
  size_t at[kMaxRank + 1] = {first};  // the sum of the dimensions before
  const size_t count = shape.numel();
  size_t dim = 0;
  for (size_t i = 0; i < count; ++i) {
    for (; dim < shape.rank; ++dim) {
      at[dim + 1] = at[dim] + static_cast<size_t>(offset(dim, index[dim]));
    }
    mover.move(in.data + at[shape.rank] * mover.in_size(), out.data + i * mover.out_size());
    while (dim > 0 && ++index[dim - 1] == shape.sizes[dim - 1]) index[--dim] = 0;
    if (dim > 0) --dim;
  }
}

/// The same with steps, one for each dimension.
void move_by_steps(const Tensor& in, size_t first, const Shape& shape, const int64_t* steps,
                   Tensor& out);

/// One slab of a dimension: as many rows as there are before it, each of `count` places. ExecuTorch
/// takes tensors of any dim order for plain ones here.
struct Slab {
  size_t rows, count, inner;
};

/// Copies a slab between places of a dimension, `step` places apart on the side that is longer.
void move_slab(const Tensor& in, size_t in_first, size_t in_row, size_t in_step, Tensor& out,
               size_t out_first, size_t out_row, size_t out_step, const Slab& slab);

}  // namespace hil
