// CONV whose weights are the second input: each of its positions is an output channel.
#pragma once

#include "jobs.h"

namespace hil::npu {

// False: not done, nothing was written.
bool matrix_product(const Job& job, const Memory& memory);

}  // namespace hil::npu
