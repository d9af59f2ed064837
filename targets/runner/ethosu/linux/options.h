// How a delegate wants to be driven: its compile specs, by the keys of ExecuTorch's
// backends/arm/runtime (EthosUBackend_Cortex_A).
#pragma once

#include <array>

#include "core/backend.h"

namespace hil::ethosu::linux_driver {

constexpr size_t kCounters = 8;  // of an Ethos-U85

struct Options {
  char device[128] = "/dev/ethosu0";             // "ethosu.device"
  int64_t timeout_ns = 60'000'000'000;           // "ethosu.timeout_ns", i64
  bool cycle_counter = true;                     // "ethosu.enable_cycle_counter", u8
  std::array<uint32_t, kCounters> pmu_events{};  // "ethosu.pmu_event0" and so on, u32
};

/// Other keys belong to somebody else. Logs what is wrong with one of these.
Error read_options(Span<const CompileSpec> specs, Options* out);

}  // namespace hil::ethosu::linux_driver
