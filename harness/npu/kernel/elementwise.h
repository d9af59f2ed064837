// ELEMENTWISE, of what one or two operands become after their scales.
#pragma once

#include "jobs.h"

namespace hil::npu {

// False: not done, nothing was written.
bool elementwise(const Job& job, const Memory& memory);

}  // namespace hil::npu
