// RESIZE: nearest and bilinear.
#pragma once

#include "jobs.h"

namespace hil::npu {

// False: not done, nothing was written.
bool resize(const Job& job, const Memory& memory);

}  // namespace hil::npu
