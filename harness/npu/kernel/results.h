// Where the sums of convolutions and pools go: through the output stage, or first to accumulators.
#pragma once

#include <atomic>

#include "jobs.h"
#include "scratch.h"

namespace hil::npu {

class Results {
 public:
  Results(const Job& job, const Memory& memory);

  // Whether there is memory for them.
  bool ready() const { return bytes_.data() != nullptr && sums_.data() != nullptr; }

  // ``count`` channels from ``channel`` on, of ``positions`` from ``position`` on, ``pitch`` apart.
  // Sums can be read up to the next multiple of kLanes. Several threads may call this.
  template <typename Value>
  void put(const Value* sums, int64_t pitch, int64_t position, int64_t positions, int64_t channel,
           int64_t count);

  // Sums that are all 0.
  void put_zeros();

  // Writes everything. False: nothing was written, and the fault says why.
  bool finish();

 private:
  void add_initial();

  const Job& job_;
  const Memory& memory_;
  bool has_output_, accumulates_;
  int64_t size_;
  std::atomic<bool> too_large_{false};
  Scratch<uint8_t> bytes_;
  Scratch<int64_t> sums_;
};

}  // namespace hil::npu
