#include "jobs.h"

#include <cstring>

#include "feature_map.h"
#include "scratch.h"
#include "vectors.h"

namespace hil::npu {
namespace {

constexpr int64_t kWeights = 0;  // the region that nobody writes to
__extension__ typedef __int128 Exact;

// ``size`` bytes at ``address``: whether they are there. Else the fault is noted.
bool has(const Memory& memory, Part part, int64_t region, Exact address, int64_t size) {
  if (part != Part::kInternal &&
      (region < 0 || region >= kRegions || memory.base[region] == nullptr)) {
    return fail(memory, Trouble::kRegion, part);
  }
  const int64_t there = part == Part::kInternal ? memory.internal_size : memory.size[region];
  if (address < 0 || address + size > there) {
    const auto low = static_cast<int64_t>(address);
    return fail(memory, Trouble::kBounds, part, low, static_cast<int64_t>(address + size));
  }
  return true;
}

// Where the rows lie.
struct Rows {
  const Copy& copy;
  const uint8_t* indices;  // null: there are none

  int64_t number(int64_t plane, int64_t row, bool indexed) const {
    return indexed ? load<int32_t>(indices + 4 * (plane * copy.rows + row)) : row;
  }

  Exact source(int64_t plane, int64_t row) const {
    const int64_t at = number(plane, row, copy.indexed == Indexed::kGather);
    return copy.source + Exact{plane} * copy.source_plane + Exact{at} * copy.source_row;
  }

  Exact target(int64_t plane, int64_t row) const {
    const int64_t at = number(plane, row, copy.indexed == Indexed::kScatter);
    return copy.target + Exact{plane} * copy.target_plane + Exact{at} * copy.target_row;
  }
};

bool check_indices(const Copy& copy, const Memory& memory, const uint8_t* indices) {
  for (int64_t n = 0; n < copy.planes * copy.rows; ++n) {
    const auto index = load<int32_t>(indices + 4 * n);
    if (index < 0 || index > copy.largest_index) {
      return fail(memory, Trouble::kIndex);
    }
  }
  return true;
}

bool check_rows(const Rows& rows, const Memory& memory) {
  const Copy& copy = rows.copy;
  const Part target = copy.internal != 0 ? Part::kInternal : Part::kTarget;
  for (int64_t plane = 0; plane < copy.planes; ++plane) {
    for (int64_t row = 0; row < copy.rows; ++row) {
      if (!has(memory, Part::kSource, copy.source_region, rows.source(plane, row), copy.length) ||
          !has(memory, target, copy.target_region, rows.target(plane, row), copy.length)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

bool copy(const Job& job, const Memory& memory) {
  const Copy& copy = job.copy;
  Rows rows{copy, nullptr};
  if (copy.indexed != Indexed::kNone) {
    if (!has(memory, Part::kIndices, copy.index_region, copy.indices,
             4 * copy.planes * copy.rows)) {
      return false;
    }
    rows.indices = memory.base[copy.index_region] + copy.indices;
    if (!check_indices(copy, memory, rows.indices)) {
      return false;
    }
  }
  if (!check_rows(rows, memory)) {
    return false;
  }
  if (copy.internal == 0 && copy.target_region == kWeights) {
    return fail(memory, Trouble::kReadOnly, Part::kTarget);
  }
  const auto length = static_cast<size_t>(copy.length);
  const Scratch<uint8_t> moved(*memory.pool, copy.planes * copy.rows * copy.length);
  const Scratch<int64_t> places(*memory.pool, copy.planes * copy.rows);
  if (moved.data() == nullptr || places.data() == nullptr) {
    return false;
  }
  for (int64_t plane = 0, n = 0; plane < copy.planes; ++plane) {
    for (int64_t row = 0; row < copy.rows; ++row, ++n) {
      const auto from = static_cast<int64_t>(rows.source(plane, row));
      std::memcpy(moved.data() + n * copy.length, memory.base[copy.source_region] + from, length);
      places.data()[n] = static_cast<int64_t>(rows.target(plane, row));
    }
  }
  uint8_t* target = copy.internal != 0 ? memory.internal : memory.base[copy.target_region];
  uint8_t* marks = copy.internal != 0 ? nullptr : memory.marks[copy.target_region];
  for (int64_t n = 0; n < copy.planes * copy.rows; ++n) {
    std::memcpy(target + places.data()[n], moved.data() + n * copy.length, length);
    if (marks != nullptr) {
      std::memset(marks + places.data()[n], 1, length);
    }
  }
  return true;
}

}  // namespace hil::npu
