// Where the elements of a dense tensor are: strides from its dim order.
#pragma once

#include "core/tensor.h"

namespace hil {

/// Elements between neighbours along each logical dimension.
struct Strides {
  int32_t step[kMaxRank];  // the tensor's rank of them
};

Strides strides_of(const Tensor& t);

/// same_layout when dim orders differ: extents of 1 have none.
bool same_strides(const Tensor& a, const Tensor& b);

/// Same sizes, and equal coordinates are at equal offsets.
inline bool same_layout(const Tensor& a, const Tensor& b) {
  if (a.rank != b.rank) return false;
  bool same_order = true;
  for (size_t i = 0; i < a.rank; ++i) {
    if (a.sizes[i] != b.sizes[i]) return false;
    same_order &= a.dim_order[i] == b.dim_order[i];
  }
  return same_order || same_strides(a, b);
}

/// A walk over up to kMaxRank nested loops, with the offsets of one destination
/// and two sources; the innermost loop is left to the caller.
struct Walk {
  struct Loop {
    int32_t count, out, a, b;
  };
  Loop loops[kMaxRank];
  size_t depth = 0;

  /// Outermost first. Loops of one step vanish; a loop that continues the one
  /// outside it in every operand is joined to it.
  void nest(Loop inner);

  /// Calls row(out_offset, a_offset, b_offset, innermost loop) for each row.
  template <typename Row>
  void each_row(Row row) const;
};

/// Where a walk is: the offsets of one row after the other.
class RowCursor {
 public:
  explicit RowCursor(const Walk& walk);

  bool at_row() const { return at_row_; }
  void next();
  const Walk::Loop& row() const { return row_; }

  int32_t out = 0, a = 0, b = 0;

 private:
  const Walk& walk_;
  Walk::Loop row_ = {1, 0, 0, 0};
  size_t depth_ = 0;  // loops around the row
  int32_t index_[kMaxRank] = {};
  bool at_row_ = true;
};

template <typename Row>
void Walk::each_row(Row row) const {
  for (RowCursor at(*this); at.at_row(); at.next()) row(at.out, at.a, at.b, at.row());
}

}  // namespace hil
