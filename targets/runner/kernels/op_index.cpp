// aten::index.Tensor_out(self, indices, out): elements at the places that index tensors (int64 or
// int32, broadcast together) name, one tensor or None for each of the first dimensions of self.
// The dimensions of the index tensors stand where the named dimensions were when these are
// neighbours, else in front. Masks are not known: their results have no size before the run.
#include "kernels/broadcast.h"
#include "kernels/bytes.h"
#include "kernels/elements.h"
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

namespace {

struct Pick {
  const Tensor* index;  // of a dimension of self; null: the dimension stays
  Load load;
  int32_t size;            // bytes of an index
  int32_t step[kMaxRank];  // of the index tensor along each dimension of out
};

struct Plan {
  Pick picks[kMaxRank];
  size_t kept_at[kMaxRank];  // the dimension of out that a dimension of self became
  size_t front;              // of out, where the index tensors' dimensions begin
  size_t width;              // how many these are
};

Error read_picks(KernelContext& ctx, Span<Value* const> indices, const Tensor& self, Plan* plan) {
  if (indices.size() > self.rank) {
    return ctx.fail(Error::InvalidArgument, "more indices than self has dimensions");
  }
  plan->width = 0;
  for (size_t dim = 0; dim < self.rank; ++dim) {
    Pick& pick = plan->picks[dim];
    const Value* value = dim < indices.size() ? indices[dim] : nullptr;
    pick.index = value == nullptr ? nullptr : &value->tensor;
    if (pick.index == nullptr) continue;
    const Tensor& t = *pick.index;
    if (t.type != ScalarType::Long && t.type != ScalarType::Int) {
      return ctx.fail(Error::NotSupported, "indices of element type %d are not supported",
                      static_cast<int>(t.type));
    }
    HIL_TRY(check_tensor(ctx, "an index", t, t.type));
    pick.load = load_for(t.type);
    pick.size = static_cast<int32_t>(element_size(t.type));
    if (t.rank > plan->width) plan->width = t.rank;
  }
  return Error::Ok;
}

/// Where the dimensions of out come from; their sizes agree with self's and the indices'.
Error place_dimensions(KernelContext& ctx, const Tensor& self, const Tensor& out, Plan* plan) {
  size_t first = self.rank, named = 0, last = 0;
  for (size_t dim = 0; dim < self.rank; ++dim) {
    if (plan->picks[dim].index == nullptr) continue;
    if (first == self.rank) first = dim;
    last = dim;
    ++named;
  }
  const bool neighbours = named == 0 || last - first + 1 == named;
  plan->front = neighbours && named != 0 ? first : 0;
  bool fits = out.rank == self.rank - named + plan->width;
  size_t next = 0;
  for (size_t dim = 0; fits && dim < self.rank; ++dim) {
    if (plan->picks[dim].index != nullptr) continue;
    if (next == plan->front) next += plan->width;
    plan->kept_at[dim] = next;
    fits = out.sizes[next++] == self.sizes[dim];
  }
  if (fits) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "out is not what the indices make of self");
}

/// The steps of each index tensor, which broadcast to the dimensions of out that are theirs.
Error place_indices(KernelContext& ctx, const Tensor& self, const Tensor& out, Plan* plan) {
  Tensor theirs = {};
  uint8_t order[kMaxRank];
  for (size_t i = 0; i < plan->width; ++i) order[i] = static_cast<uint8_t>(i);
  theirs.rank = static_cast<uint8_t>(plan->width);
  theirs.sizes = out.sizes + plan->front;
  theirs.dim_order = order;
  for (size_t dim = 0; dim < self.rank; ++dim) {
    Pick& pick = plan->picks[dim];
    if (pick.index == nullptr) continue;
    if (!broadcast_steps(*pick.index, theirs, pick.step)) {
      return ctx.fail(Error::InvalidArgument, "the indices do not broadcast to out");
    }
  }
  return Error::Ok;
}

/// The offset in self of the element for a place in out; false for an index beyond self.
bool source_of(const Plan& plan, const Tensor& self, const Strides& from, const int32_t* place,
               int64_t* offset) {
  *offset = 0;
  for (size_t dim = 0; dim < self.rank; ++dim) {
    const Pick& pick = plan.picks[dim];
    int64_t at = 0;
    if (pick.index == nullptr) {
      at = place[plan.kept_at[dim]];
    } else {
      int32_t where = 0;
      for (size_t i = 0; i < plan.width; ++i) where += place[plan.front + i] * pick.step[i];
      at = pick.load(pick.index->data + where * pick.size).whole;
      if (at < 0) at += self.sizes[dim];
      if (at < 0 || at >= self.sizes[dim]) return false;
    }
    *offset += at * from.step[dim];
  }
  return true;
}

}  // namespace

Error op_index(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  const Span<Value* const> indices = ctx.optional_tensor_list(args, 1);
  Tensor& out = ctx.tensor(args, 2);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_movable(ctx, self, out));
  Plan plan = {};
  HIL_TRY(read_picks(ctx, indices, self, &plan));
  HIL_TRY(place_dimensions(ctx, self, out, &plan));
  HIL_TRY(place_indices(ctx, self, out, &plan));
  const Strides from = strides_of(self), to = strides_of(out);
  const size_t size = element_size(self.type);
  int32_t place[kMaxRank] = {};
  for (size_t n = 0; n < out.numel; ++n) {
    int64_t source, target = 0;
    if (!source_of(plan, self, from, place, &source)) {
      return ctx.fail(Error::InvalidArgument, "an index lies outside self");
    }
    for (size_t dim = 0; dim < out.rank; ++dim) target += int64_t{place[dim]} * to.step[dim];
    copy_bytes(out.data + static_cast<size_t>(target) * size,
               self.data + static_cast<size_t>(source) * size, size);
    for (size_t dim = out.rank; dim-- > 0;) {
      if (++place[dim] < out.sizes[dim]) break;
      place[dim] = 0;
    }
  }
  return Error::Ok;
}
HIL_OPERATOR("aten::index.Tensor_out", op_index);

}  // namespace hil
