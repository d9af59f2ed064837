// ExecuTorch's "EthosUBackend", common to all platforms.
#pragma once

#include "core/backend.h"

namespace hil::ethosu {

Backend& backend();

}  // namespace hil::ethosu
