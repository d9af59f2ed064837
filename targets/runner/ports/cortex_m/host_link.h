// How a bare board and its host talk: by semihosting, or over a serial line (HIL_HOST_LINK).
#pragma once

#include "ports/semihosted.h"

namespace hil {

/// Tells the host the exit status; nothing runs afterwards.
[[noreturn]] void end_run(int status);

}  // namespace hil
