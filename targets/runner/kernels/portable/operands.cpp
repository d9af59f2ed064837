#include "kernels/portable/operands.h"

namespace hil {

namespace {

/// Whether two shapes are one but for leading extents of 1.
bool same_but_leading_ones(const Tensor& a, const Tensor& b) {
  size_t i = 0, j = 0;
  while (i < a.rank && a.sizes[i] == 1) ++i;
  while (j < b.rank && b.sizes[j] == 1) ++j;
  if (a.rank - i != b.rank - j) return false;
  for (; i < a.rank; ++i, ++j) {
    if (a.sizes[i] != b.sizes[j]) return false;
  }
  return true;
}

}  // namespace

Broadcast::Broadcast(const Tensor* const* inputs, size_t count, const Tensor& out) : count_(count) {
  bool flat = true;
  for (size_t k = 0; k < count; ++k) flat = flat && same_but_leading_ones(*inputs[k], out);
  if (flat || out.rank == 0) {
    width_ = out.numel;
    for (size_t k = 0; k < count; ++k) step_[k] = 1;
    return;
  }
  depth_ = out.rank - 1u;
  width_ = static_cast<size_t>(out.sizes[depth_]);
  rows_ = width_ == 0 ? 0 : out.numel / width_;
  for (size_t i = 0; i < depth_; ++i) sizes_[i] = out.sizes[i];
  for (size_t k = 0; k < count; ++k) {
    const Tensor& t = *inputs[k];
    const Steps own = steps_of(t);
    const size_t added = static_cast<size_t>(out.rank - t.rank);
    for (size_t i = added; i < out.rank; ++i) {
      const size_t step = t.sizes[i - added] == 1 ? 0 : static_cast<size_t>(own.of[i - added]);
      (i == depth_ ? step_[k] : steps_[k][i]) = step;
    }
  }
}

void Broadcast::next_row() {
  ++row_;
  for (size_t dim = depth_; dim-- > 0;) {
    const bool more = ++index_[dim] < sizes_[dim];
    for (size_t k = 0; k < count_; ++k) {
      offset_[k] += steps_[k][dim];
      if (!more) offset_[k] -= steps_[k][dim] * static_cast<size_t>(sizes_[dim]);
    }
    if (more) return;
    index_[dim] = 0;
  }
}

}  // namespace hil
