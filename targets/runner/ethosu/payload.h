// The driver actions in front of a command stream ("custom operator payload", COP1).
// Format: ethos-u-vela 5.1.0, ethosu/vela/driver_actions.py. After the four characters "COP1"
// come actions: word = action [7:0], high bits of a length [15:8], low bits [31:16].
#pragma once

#include "core/error.h"
#include "core/span.h"

namespace hil::ethosu {

struct Payload {
  bool has_config = false;
  uint32_t config = 0;  // as the NPU's CONFIG register of the product it was compiled for
  uint32_t id = 0;      // as the NPU's ID register
  Span<const uint8_t> commands;
};

/// Checks all of `bytes`. Exactly one command stream is accepted: Vela emits no more.
Error read_payload(Span<const uint8_t> bytes, Payload* out);

}  // namespace hil::ethosu
