// ExecuTorch's "EthosUBackend", common to all platforms.
#pragma once

#include "core/backend.h"

namespace hil::ethosu {

Backend& backend();

/// For the table of the build's backends.
BackendEntry entry();

}  // namespace hil::ethosu
