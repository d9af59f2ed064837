#include "kernels/ranking.h"

#include <cstring>

#include "kernels/arithmetic.h"
#include "kernels/elements.h"
#include "kernels/lines.h"

namespace hil {

namespace {

constexpr uint64_t kSign = uint64_t{1} << 63;

/// Orders as the values do; equal values, and all NaN, have one key.
uint64_t key_of(const Scalar& value) {
  if (!value.is_real) return static_cast<uint64_t>(value.whole) ^ kSign;
  if (value.real != value.real) return UINT64_MAX;
  const double real = value.real == 0.0 ? 0.0 : value.real;  // one zero
  uint64_t bits;
  std::memcpy(&bits, &real, sizeof(bits));
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

Error check(KernelContext& ctx, const Ranking& r, size_t axis) {
  HIL_TRY(check_tensor(ctx, "self", r.self, r.self.type));
  HIL_TRY(check_tensor(ctx, "values", r.values, r.self.type));
  HIL_TRY(check_tensor(ctx, "indices", r.indices, ScalarType::Long));
  const int32_t extent = r.self.sizes[axis];
  const int32_t wanted = r.wanted < 0 ? extent : r.wanted;
  if (wanted > extent) return range_error(ctx, "k", wanted, 0, extent);
  if (line_shape(r.self, axis, wanted, r.values) && line_shape(r.self, axis, wanted, r.indices)) {
    return Error::Ok;
  }
  return ctx.fail(Error::InvalidArgument, "values and indices are not self with %ld elements each",
                  static_cast<long>(wanted));
}

}  // namespace

Error rank_lines(KernelContext& ctx, const Ranking& r, Order order) {
  size_t axis;
  HIL_TRY(check_dim(ctx, r.dim, r.self.rank, &axis));
  HIL_TRY(check(ctx, r, axis));
  const Load load = load_for(r.self.type);
  const Store store = store_for(r.self.type);
  if (load == nullptr) return unsupported_type(ctx, r.self.type);
  const size_t wanted = static_cast<size_t>(r.values.sizes[axis]);
  if (r.values.numel == 0) return Error::Ok;
  Span<Ranked> ranks;
  HIL_TRY(ctx.scratch(static_cast<size_t>(r.self.sizes[axis]), &ranks));

  const int32_t size = static_cast<int32_t>(element_size(r.self.type));
  const int32_t from = strides_of(r.self).step[axis], to = strides_of(r.values).step[axis];
  const int32_t place = strides_of(r.indices).step[axis];
  each_line(r.self, axis, r.values, r.indices, [&](const LineStart& line) {
    const uint8_t* in = r.self.data + line.in * size;
    for (size_t i = 0; i < ranks.size(); ++i) {
      const int32_t index = static_cast<int32_t>(i);
      const uint64_t key = key_of(load(in + index * from * size));
      ranks[i] = {r.descending ? ~key : key, index};
    }
    order(ranks, wanted);
    for (size_t i = 0; i < wanted; ++i) {
      const int32_t at = static_cast<int32_t>(i);
      store(load(in + ranks[i].index * from * size), r.values.data + (line.out + at * to) * size);
      r.indices.as<int64_t>()[line.other + at * place] = ranks[i].index;
    }
  });
  return Error::Ok;
}

}  // namespace hil
