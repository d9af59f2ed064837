// Elements of a line in order of their size, for topk and sort.
#pragma once

#include "kernels/checks.h"

namespace hil {

/// An element's place in the order and in its line.
struct Ranked {
  uint64_t key;
  int32_t index;

  bool operator<(const Ranked& other) const { return key < other.key; }
};

/// A line's elements ordered in place: `ranks` has one entry for each.
using Order = void (*)(Span<Ranked> ranks, size_t wanted);

/// What topk and sort have in common: for each line along `dim` the first `wanted` elements in
/// the order that `order` makes of them (ascending, or descending), and their indices. NaN is
/// larger than everything.
struct Ranking {
  const Tensor& self;
  int32_t dim;
  bool descending;
  int32_t wanted;  // negative: all
  Tensor& values;
  Tensor& indices;
};

Error rank_lines(KernelContext& ctx, const Ranking& ranking, Order order);

}  // namespace hil
