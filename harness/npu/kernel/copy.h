// DMA_START: planes of rows from one place to another, or by indices.
#pragma once

#include "jobs.h"

namespace hil::npu {

// False: not done, nothing was written.
bool copy(const Job& job, const Memory& memory);

}  // namespace hil::npu
