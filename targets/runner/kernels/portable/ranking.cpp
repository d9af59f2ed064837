// The largest or smallest elements of each line. Which of equal ones is taken is what the standard
// library's algorithms leave open: the same ones as ExecuTorch's are used.
#include "kernels/ranking.h"

#include <algorithm>
#include <cstring>

#include "kernels/operator.h"
#include "kernels/portable/call.h"
#include "kernels/portable/elements.h"

namespace hil {

namespace {

constexpr size_t kFew = 64;  // a line is at least so many times as long as what is wanted of it
constexpr uint64_t kSign = uint64_t{1} << 63;

/// Orders as the values do, NaN last; equal values have one key.
template <typename E>
uint64_t key_of(E value) {
  if constexpr (std::is_integral<E>::value) {
    return static_cast<uint64_t>(static_cast<int64_t>(value)) ^ kSign;
  } else {
    const double real = static_cast<double>(static_cast<Wide<E>>(value));
    if (real != real) return UINT64_MAX;
    const double one_zero = real == 0.0 ? 0.0 : real;
    uint64_t bits;
    std::memcpy(&bits, &one_zero, sizeof(bits));
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  }
}

void take(Span<Ranked> ranks, size_t wanted, bool sorted) {
  if (wanted * kFew <= ranks.size()) {
    return std::partial_sort(ranks.begin(), ranks.begin() + wanted, ranks.end());
  }
  std::nth_element(ranks.begin(), ranks.begin() + wanted - 1, ranks.end());
  if (sorted) std::sort(ranks.begin(), ranks.begin() + wanted - 1);
}

/// Where a line of `t` begins: line `i` of those across dimension `axis`.
size_t line_start(const Tensor& t, size_t axis, size_t i) {
  const Steps steps = steps_of(t);
  int64_t start = 0;
  for (size_t d = t.rank; d-- > 0;) {
    if (d == axis) continue;
    const size_t size = static_cast<size_t>(t.sizes[d]);
    start += static_cast<int64_t>(i % size) * steps.of[d];
    i /= size;
  }
  return static_cast<size_t>(start);
}

}  // namespace

Error portable_topk(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& self = call.tensor(0);
  const int64_t k = call.integer(1), dim = call.integer(2);
  const bool largest = call.boolean(3), sorted = call.boolean(4);
  Tensor& values = call.tensor(5);
  Tensor& indices = call.tensor(6);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_same_type(ctx, {&self, &values}));
  HIL_TRY(require_type(ctx, indices, only(ScalarType::Long)));
  size_t axis = 0;
  HIL_TRY(require_dim(ctx, self, dim, &axis));
  const int64_t length = extent(self, axis);
  HIL_REQUIRE(k >= 0 && k <= length, "k is more than the dimension has");
  Shape shape = Shape::of(self);
  if (self.rank != 0) shape.sizes[axis] = k;
  HIL_TRY(give_shape(ctx, values, shape));
  HIL_TRY(give_shape(ctx, indices, shape));
  HIL_TRY(require_type(ctx, self, kReals));
  if (values.numel == 0) return Error::Ok;
  const size_t wanted = self.rank == 0 ? 1 : static_cast<size_t>(k);
  Span<Ranked> ranks;
  HIL_TRY(ctx.scratch(static_cast<size_t>(length), &ranks));
  const auto step = [axis](const Tensor& t) {
    return t.rank == 0 ? size_t{1} : static_cast<size_t>(steps_of(t).of[axis]);
  };
  const size_t from = step(self), to = step(values), place = step(indices);
  for_type(self.type, [&](auto zero) {
    using E = decltype(zero);
    for (size_t i = 0; i < values.numel / wanted; ++i) {
      const E* line = self.as<E>() + line_start(self, axis, i);
      for (size_t n = 0; n < ranks.size(); ++n) {
        const uint64_t key = key_of(line[n * from]);
        ranks[n] = {largest ? ~key : key, static_cast<int32_t>(n)};
      }
      take(ranks, wanted, sorted);
      E* best = values.as<E>() + line_start(values, axis, i);
      int64_t* places = indices.as<int64_t>() + line_start(indices, axis, i);
      for (size_t n = 0; n < wanted; ++n) {
        best[n * to] = line[static_cast<size_t>(ranks[n].index) * from];
        places[n * place] = ranks[n].index;
      }
    }
  });
  return Error::Ok;
}
HIL_OPERATOR("aten::topk.values", portable_topk);

}  // namespace hil
