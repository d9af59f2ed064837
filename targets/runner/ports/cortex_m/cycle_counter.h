// Cycles of the core, by the counter of its DWT unit, where it has one.
#pragma once

#include <cstdint>

namespace hil {

/// False when the core has no such counter (QEMU, Cortex-M0).
bool start_cycle_counter();
/// Right when it is read again before 2^32 cycles have passed.
uint64_t read_cycle_counter();

}  // namespace hil
