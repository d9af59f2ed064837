// What differs between the machines an Ethos-U delegate runs on. platform_cortex_m.cpp drives the
// NPU itself; linux/platform_cortex_a.cpp hands the stream and the tensors to a driver of Linux.
#pragma once

#include "core/arena.h"
#include "core/backend.h"
#include "ethosu/vela_stream.h"

namespace hil::ethosu::platform {

/// Where this machine's NPU has inputs and outputs; streams of the other kind are refused.
Placement placement();

/// State of one delegate in `*state` (may stay null).
Error open(const DelegateSetup& setup, const VelaStream& stream, void** state);
/// Puts each input where the stream has it, runs the stream, and fetches each output; all
/// arguments were checked against the stream. Logs why not.
Error execute(void* state, const VelaStream& stream, Span<Value* const> args, Arena& temp);
void close(void* state);

}  // namespace hil::ethosu::platform
