// From accumulator to stored value: bias, scale, zero point, clamp, table. Rounding NATURAL is half
// up, as in the TOSA reference model's RESCALE, and a table is looked up as in its TABLE.
#pragma once

#include "jobs.h"

namespace hil::npu {

// Whether the table, if there is one, lies in the internal memory; else the fault is noted.
bool has_table(const Output& output, const Memory& memory);

// Values of some positions, one after another, and where their results go. Values can be read up to
// the next multiple of kLanes; ``pitch`` and ``to_pitch`` (bytes) lead to the next position.
template <typename Value>
struct Values {
  const Value* data;
  int64_t pitch, positions;
  uint8_t* to;
  int64_t to_pitch;
};

// ``count`` channels from ``channel`` on, at ``position`` and those after it.
template <typename Value>
void finish_values(const Job& job, const Memory& memory, const Values<Value>& values,
                   int64_t channel, int64_t position, int64_t count);

}  // namespace hil::npu
