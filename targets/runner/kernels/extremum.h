// Minimum and maximum of two int8 tensors with broadcasting.
#pragma once

#include "core/kernel.h"
#include "kernels/extremum_helium.h"
#include "kernels/extremum_scalar.h"
#include "kernels/isa.h"

namespace hil {

/// out[i] of a[i] and b[i], each with its step in `loop`.
using ChooseRow = void (*)(const int8_t* a, const int8_t* b, int8_t* out, const Walk::Loop& loop);

/// The operator whose rows `choose` computes.
Error extremum(KernelContext& ctx, Args args, ChooseRow choose);

}  // namespace hil
