#include "jobs.h"

#include <algorithm>
#include <cstring>

#include "feature_map.h"
#include "output.h"
#include "scratch.h"
#include "wrapping.h"

namespace hil::npu {
namespace {

// Where an output index lies in the input: ``part`` of ``n`` behind ``index``.
struct Place {
  int64_t index, part;

  Place(const Axis& axis, int64_t number) {
    const int64_t at = number * axis.step + axis.offset;
    index = at >= 0 ? at / axis.n : -((axis.n - 1 - at) / axis.n);
    part = at - index * axis.n;
  }
};

int64_t within(int64_t index, int64_t size) { return std::clamp<int64_t>(index, 0, size - 1); }

int64_t nearest(const Axis& axis, int64_t number, int64_t size) {
  const Place place(axis, number);
  return within(place.index + (2 * place.part >= axis.n ? 1 : 0), size);
}

// A row of the input is finished before it is spread: nothing of that depends on the position.
template <typename Value>
bool choose(const Job& job, const Memory& memory, uint8_t* results) {
  const Output& output = job.output;
  const Map& map = job.first.map;
  const int64_t bytes = output.depth * output.map.bytes, row = output.width * bytes;
  const Scratch<Value> line(*memory.pool, map.width * map.depth);
  const Scratch<uint8_t> finished(*memory.pool, map.width * bytes);
  if (line.data() == nullptr || finished.data() == nullptr) {
    return false;
  }
  int64_t last = -1;
  for (int64_t y = 0; y < output.height; ++y, results += row) {
    const int64_t from = nearest(job.resize.y, y, map.height);
    if (from == last) {
      std::memcpy(results, results - row, static_cast<size_t>(row));
      continue;
    }
    last = from;
    read_row(map, memory, from, job.first.zero_point, line.data(), map.depth);
    finish_values(job, memory, Values<Value>{line.data(), 0, 1, finished.data(), 0}, 0, 0,
                  map.width * map.depth);
    for (int64_t x = 0; x < output.width; ++x) {
      const uint8_t* chosen = finished.data() + nearest(job.resize.x, x, map.width) * bytes;
      std::memcpy(results + x * bytes, chosen, static_cast<size_t>(bytes));
    }
  }
  return true;
}

template <typename Value>
void mix(const Value* near, const Value* far, Value far_weight, Value all, int64_t count,
         Value* __restrict to) {
  const Value near_weight = all - far_weight;
  for (int64_t n = 0; n < count; ++n) {
    to[n] = wrapped_sum(wrapped_product(near[n], near_weight), wrapped_product(far[n], far_weight));
  }
}

// The two rows of the input that were asked for last.
template <typename Value>
class Rows {
 public:
  Rows(const Job& job, const Memory& memory, int64_t count)
      : job_(job), memory_(memory), line_{{*memory.pool, count}, {*memory.pool, count}} {}

  bool ready() const { return line_[0].data() != nullptr && line_[1].data() != nullptr; }

  // Not the one that holds ``other``.
  const Value* row(int64_t y, int64_t other) {
    if (held_[0] != y && held_[1] != y) {
      const int into = held_[0] == other ? 1 : 0;
      held_[into] = y;
      read_row(job_.first.map, memory_, y, job_.first.zero_point, line_[into].data(),
               job_.first.map.depth);
    }
    return line_[held_[0] == y ? 0 : 1].data();
  }

 private:
  const Job& job_;
  const Memory& memory_;
  Scratch<Value> line_[2];
  int64_t held_[2] = {-1, -1};
};

// First the rows, then the columns, as TOSA has it; sums are exact in either order.
template <typename Value>
bool blend(const Job& job, const Memory& memory, uint8_t* results) {
  const Output& output = job.output;
  const Map& map = job.first.map;
  const Axis &down = job.resize.y, &along = job.resize.x;
  const int64_t depth = output.depth, row = output.width * depth;
  Rows<Value> rows(job, memory, map.width * depth);
  const Scratch<Value> mixed(*memory.pool, map.width * depth), line(*memory.pool, row);
  if (!rows.ready() || mixed.data() == nullptr || line.data() == nullptr) {
    return false;
  }
  for (int64_t y = 0; y < output.height; ++y) {
    const Place place(down, y);
    const int64_t low = within(place.index, map.height), high = within(place.index + 1, map.height);
    const Value* near = rows.row(low, high);
    const Value* far = rows.row(high, low);
    mix(near, far, static_cast<Value>(place.part), static_cast<Value>(down.n), map.width * depth,
        mixed.data());
    for (int64_t x = 0; x < output.width; ++x) {
      const Place column(along, x);
      const Value* left = mixed.data() + within(column.index, map.width) * depth;
      const Value* right = mixed.data() + within(column.index + 1, map.width) * depth;
      mix(left, right, static_cast<Value>(column.part), static_cast<Value>(along.n), depth,
          line.data() + x * depth);
    }
    uint8_t* to = results + y * row * output.map.bytes;
    finish_values(job, memory, Values<Value>{line.data(), 0, 1, to, 0}, 0, 0, row);
  }
  return true;
}

template <typename Value>
bool done(const Job& job, const Memory& memory, uint8_t* results) {
  return job.resize.bilinear != 0 ? blend<Value>(job, memory, results)
                                  : choose<Value>(job, memory, results);
}

}  // namespace

bool resize(const Job& job, const Memory& memory) {
  const Output& output = job.output;
  if (output.map.tiles == 0) {
    return true;
  }
  const Scratch<uint8_t> results(*memory.pool,
                                 output.height * output.width * output.depth * output.map.bytes);
  if (results.data() == nullptr || job.resize.y.n < 1 || job.resize.x.n < 1) {
    return false;
  }
  if (!(job.wide != 0 ? done<int64_t>(job, memory, results.data())
                      : done<int32_t>(job, memory, results.data()))) {
    return false;
  }
  write(output, memory, results.data());
  return true;
}

}  // namespace hil::npu
