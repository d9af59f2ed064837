// What ethosu_invoke() of Arm's ethos-u-core-driver does, on any Device. Messages are the
// driver's own, so that one reader understands both.
#pragma once

#include "ethosu/device.h"

namespace hil::ethosu {

/// Runs a delegate's "cmd_data". Every driver failure is InvalidProgram, as in ExecuTorch's
/// Cortex-M backend; NotSupported is a stream that the driver or the stand-in does not know.
Error invoke(Device& device, Span<const uint8_t> payload, Span<const Region> regions);

/// True when a stream compiled for `wanted` runs on an NPU that is `actual`; logs each reason.
bool verify_config(uint32_t actual_config, uint32_t actual_id, uint32_t wanted_config,
                   uint32_t wanted_id);

}  // namespace hil::ethosu
