// The system counter of Arm's SSE-300 and SSE-320 subsystems.
#pragma once

#include <cstdint>

namespace hil {

void start_system_counter();
uint64_t read_system_counter();

}  // namespace hil
