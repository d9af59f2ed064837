// POOL: sums, extremes and sums of channels.
#pragma once

#include "jobs.h"

namespace hil::npu {

// False: not done, nothing was written.
bool pool(const Job& job, const Memory& memory);

}  // namespace hil::npu
