// From accumulator to stored value: bias, scale, zero point, clamp, table (output_stage.py).
#pragma once

#include "jobs.h"

namespace hil::npu {

// Whether the table, if there is one, lies in the internal memory.
bool has_table(const Output& output, const Memory& memory);

// ``count`` values of channels from ``channel`` on, at one position; ``values`` can be read up to
// the next multiple of kLanes. ``to``: room for count results.
template <typename Value>
void finish(const Job& job, const Memory& memory, const Value* values, int64_t channel,
            int64_t position, int64_t count, uint8_t* to);

}  // namespace hil::npu
