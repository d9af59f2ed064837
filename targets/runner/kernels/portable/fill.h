// A tensor of one value.
#pragma once

#include "core/kernel.h"

namespace hil {

/// Sets every element of out to the number or bool that is argument `index`; InvalidArgument when
/// an integer type cannot hold it.
Error fill(KernelContext& ctx, Args args, size_t index, Tensor& out);

}  // namespace hil
