// Inputs and outputs in the scratch region, for machines whose NPU shares their memory.
#pragma once

#include "core/arena.h"
#include "core/value.h"
#include "ethosu/vela_stream.h"

namespace hil::ethosu {

/// Runs a stream whose inputs lie in `scratch`; the outputs do afterwards.
using InvokeInScratch = Error (*)(void* state, const VelaStream& stream, Span<uint8_t> scratch);

/// platform::execute() where scratch comes from `temp`.
Error execute_in_scratch(const VelaStream& stream, Span<Value* const> args, Arena& temp,
                         InvokeInScratch invoke, void* state);

}  // namespace hil::ethosu
