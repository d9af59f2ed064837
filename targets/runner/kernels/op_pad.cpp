// cortex_m::pad.out(input, pre_pad, post_pad, pad_value, out). The lists have
// four entries; for a channels-last image they are in memory order (NHWC), for
// anything else they are aligned with the last dimensions.
#include "kernels/bytes.h"
#include "kernels/move.h"
#include "kernels/operator.h"

namespace hil {

namespace {

constexpr size_t kPadRank = 4;

Error check_padding(KernelContext& ctx, const Tensor& input, const Tensor& out, const int32_t* pre,
                    const int32_t* post) {
  for (size_t i = 0; i < kPadRank; ++i) {
    HIL_TRY(check_range(ctx, "pre_pad", pre[i], 0, 1 << 20));
    HIL_TRY(check_range(ctx, "post_pad", post[i], 0, 1 << 20));
  }
  for (size_t dim = 0; dim < input.rank; ++dim) {
    const size_t i = kPadRank - input.rank + dim;
    if (out.sizes[dim] != input.sizes[dim] + pre[i] + post[i]) {
      return ctx.fail(Error::InvalidArgument, "out has %ld in dimension %u, expected %ld",
                      static_cast<long>(out.sizes[dim]), static_cast<unsigned>(dim),
                      static_cast<long>(input.sizes[dim]) + pre[i] + post[i]);
    }
  }
  return Error::Ok;
}

/// {N, H, W, C} to {N, C, H, W}.
void to_logical_order(int32_t* pad) {
  const int32_t height = pad[1], width = pad[2], channels = pad[3];
  pad[1] = channels, pad[2] = height, pad[3] = width;
}

/// As is_channels_last in passes_utils.py: also images of one channel or one pixel.
bool memory_order_lists(const Tensor& t) { return t.rank == 4 && is_channels_last(t); }

}  // namespace

Error op_pad(KernelContext& ctx, Args args) {
  const Tensor& input = ctx.tensor(args, 0);
  int32_t pre[kPadRank], post[kPadRank];
  ctx.int_list(args, 1, pre, kPadRank);
  ctx.int_list(args, 2, post, kPadRank);
  const int32_t pad_value = ctx.int32(args, 3);
  Tensor& out = ctx.tensor(args, 4);
  if (!ctx.ok()) return ctx.argument_error();

  HIL_TRY(check_tensor(ctx, "input", input, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Char));
  HIL_TRY(check_range(ctx, "pad_value", pad_value, -128, 127));
  if (input.rank < 1 || input.rank > kPadRank || out.rank != input.rank) {
    return ctx.fail(Error::InvalidArgument, "ranks %u and %u", static_cast<unsigned>(input.rank),
                    static_cast<unsigned>(out.rank));
  }
  if (memory_order_lists(input)) {
    to_logical_order(pre);
    to_logical_order(post);
  }
  HIL_TRY(check_padding(ctx, input, out, pre, post));
  fill_bytes(out.data, static_cast<int8_t>(pad_value), out.numel);
  const Strides to = strides_of(out);
  size_t first = 0;
  for (size_t dim = 0; dim < out.rank; ++dim) {
    first += static_cast<size_t>(pre[kPadRank - out.rank + dim]) * to.step[dim];
  }
  place(input, out, first);
  return Error::Ok;
}
HIL_OPERATOR("cortex_m::pad.out", op_pad);

}  // namespace hil
