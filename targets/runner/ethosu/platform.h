// What differs between the machines an Ethos-U delegate runs on. platform_cortex_m.cpp drives the
// NPU itself; a Cortex-A platform would hand the stream and the tensors to a Linux driver.
#pragma once

#include "core/arena.h"
#include "core/backend.h"
#include "ethosu/vela_stream.h"

namespace hil::ethosu::platform {

/// State of one delegate in `*state` (may stay null).
Error open(const DelegateSetup& setup, const VelaStream& stream, void** state);
/// Inputs lie in `scratch` already, outputs do afterwards.
Error invoke(void* state, const VelaStream& stream, Span<uint8_t> scratch);
void close(void* state);

}  // namespace hil::ethosu::platform
