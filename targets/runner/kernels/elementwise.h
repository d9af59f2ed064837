// Two int8 operands of one shape, or one of them a vector of channels.
#pragma once

#include "kernels/checks.h"
#include "kernels/layout.h"

namespace hil {

/// out[r * row + i] from a[r * a_step + i] and b[r * b_step + i].
struct Pairs {
  size_t rows = 0, row = 0;
  const int8_t *a = nullptr, *b = nullptr;
  size_t a_step = 0, b_step = 0;
  int8_t* out = nullptr;
};

/// As is_channel_broadcast in passes_utils.py: channels-last, equal channel
/// counts, and one operand holds nothing but its channels.
inline bool channel_vector(const Tensor& whole, const Tensor& channels) {
  return whole.rank == 4 && channels.rank == 4 && is_channels_last(whole) &&
         is_channels_last(channels) && whole.sizes[1] == channels.sizes[1] &&
         channels.numel == static_cast<size_t>(channels.sizes[1]);
}

inline Error pair_up(KernelContext& ctx, const Tensor& a, const Tensor& b, Tensor& out,
                     Pairs* pairs) {
  HIL_TRY(check_tensor(ctx, "self", a, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "other", b, ScalarType::Char));
  HIL_TRY(check_tensor(ctx, "out", out, ScalarType::Char));
  const int8_t *pa = a.as<int8_t>(), *pb = b.as<int8_t>();
  int8_t* po = out.as<int8_t>();
  if (same_layout(a, b) && same_layout(a, out)) {
    *pairs = {1, out.numel, pa, pb, 0, 0, po};
    return Error::Ok;
  }
  const bool b_repeats = channel_vector(a, b) && same_layout(a, out);
  const bool a_repeats = !b_repeats && channel_vector(b, a) && same_layout(b, out);
  if (!a_repeats && !b_repeats) {
    return ctx.fail(Error::InvalidArgument,
                    "shapes or dim orders differ by more than a broadcast of channels");
  }
  const size_t row = static_cast<size_t>(a.sizes[1]);
  *pairs = {
      row == 0 ? 0 : out.numel / row, row, pa, pb, a_repeats ? 0 : row, b_repeats ? 0 : row, po};
  return Error::Ok;
}

}  // namespace hil
