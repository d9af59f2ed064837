#include "core/tensor.h"

namespace hil {

namespace {

/// True when the dimensions of extent > 1 appear in memory in the order `wanted`.
bool has_order(const Tensor& t, const uint8_t* wanted) {
  size_t next = 0;
  for (size_t i = 0; i < t.rank; ++i) {
    const uint8_t dim = t.dim_order[i];
    if (t.sizes[dim] == 1) continue;
    while (next < t.rank && t.sizes[wanted[next]] == 1) ++next;
    if (next == t.rank || wanted[next] != dim) return false;
    ++next;
  }
  return true;
}

}  // namespace

bool is_contiguous(const Tensor& t) {
  static constexpr uint8_t kLogical[kMaxRank] = {0, 1, 2, 3, 4, 5, 6, 7};
  return has_order(t, kLogical);
}

bool is_channels_last(const Tensor& t) {
  static constexpr uint8_t kNhwc[4] = {0, 2, 3, 1};
  return t.rank == 4 && has_order(t, kNhwc);
}

bool same_shape(const Tensor& a, const Tensor& b) {
  if (a.type != b.type || a.rank != b.rank) return false;
  for (size_t i = 0; i < a.rank; ++i) {
    if (a.sizes[i] != b.sizes[i]) return false;
  }
  return true;
}

}  // namespace hil
