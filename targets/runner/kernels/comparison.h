// Comparisons of two tensors of one type that broadcast; the result is bool.
#pragma once

#include "core/kernel.h"

namespace hil {

/// Outcomes of a comparison, as bits; NaN gives none of them.
enum Outcome : uint8_t { kLess = 1, kEqual = 2, kGreater = 4 };

/// out = the outcome of (self, other) is among `wanted`.
Error compare(KernelContext& ctx, Args args, uint8_t wanted);

}  // namespace hil
