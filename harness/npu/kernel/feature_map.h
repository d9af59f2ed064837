// Feature maps in memory: bounds, rows in, results out. feature_map.py says what lies where.
#pragma once

#include "jobs.h"

namespace hil::npu {

// Notes why the job is not done. False, so that callers can return it.
bool fail(const Memory& memory, Trouble trouble, Part part = Part::kNone, int64_t low = 0,
          int64_t high = 0);

// Whether every element is inside its region, whole bricks included; else the fault is noted. What
// has no tile is no map.
bool inside(const Map& map, const Memory& memory, Part part);

// Row ``y`` less the zero point, ``pitch`` elements apart; what is between is left alone.
template <typename To>
void read_row(const Map& map, const Memory& memory, int64_t y, int64_t zero_point, To* out,
              int64_t pitch);

// The whole input with its padding, up-scaled: rows of ``columns`` x ``pitch`` elements.
template <typename To>
struct Padded {
  To* data;
  int64_t columns, pitch;
};

template <typename To>
bool read_padded(const Job& job, const Memory& memory, To fill, Padded<To>& out);

int64_t padded_rows(const Window& window);
int64_t padded_columns(const Window& window);

// Packed results (height, width, depth before the transpose) to memory, and their marks.
void write(const Output& output, const Memory& memory, const uint8_t* results);

}  // namespace hil::npu
