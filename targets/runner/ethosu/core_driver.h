// Arm's ethos-u-core-driver, where somebody else's build brings and starts it: the module
// hal_ethos_u of a Zephyr workspace.
#pragma once

#include "ethosu/device.h"

namespace hil::ethosu {

/// A delegate's "cmd_data" through ethosu_invoke_v3(); errors as invoke() of driver.h has them.
Error invoke_core_driver(Span<const uint8_t> payload, Span<const Region> regions);

}  // namespace hil::ethosu
