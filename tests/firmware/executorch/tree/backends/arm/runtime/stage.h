#pragma once

#include "core/backend.h"
#include "ethosu/vela_stream.h"

namespace hil::ethosu {

/// False when there is not enough temporary memory.
bool stage_inputs(const VelaStream& stream, Span<Value* const> args);

}  // namespace hil::ethosu
