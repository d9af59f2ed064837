// A Linux with an Ethos-U85 for tests: an NPU that does what a test says, the driver, and the
// library's operating system with the faults that a test plans.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ethosu/linux/faulty_system.h"
#include "ethosu/linux/user_driver.h"
#include "vela_builder.h"

namespace fake {

using hil::ethosu::linux_driver::Call;
using hil::ethosu::linux_driver::Ending;
using hil::ethosu::linux_driver::FaultySystem;
using Fault = FaultySystem::Fault;
using Regions = hil::Span<const hil::Span<uint8_t>>;

class LinuxNpu final : public hil::ethosu::linux_driver::Npu {
 public:
  bool identify(uint32_t* config, uint32_t* id) override;
  size_t sram_bytes() override { return 4096; }
  uint8_t* take(size_t bytes) override;
  void give_back(uint8_t* memory) override;
  void start(hil::Span<const uint8_t> commands, Regions regions) override;
  bool ended(int64_t timeout_ns, Ending* out) override;

  uint32_t config = build::kU85_256, id = build::kU85Id;
  bool answers = true;  // when it is asked who it is
  bool stuck = false;   // works for ever
  bool has_memory = true;
  Ending ending;
  std::function<void(Regions)> work;
  std::vector<build::Bytes> commands;                    // of each stream that was started
  std::map<uint8_t*, std::unique_ptr<uint8_t[]>> taken;  // each exactly as long as it says
  std::vector<std::vector<size_t>> region_sizes;         // of each stream
};

struct World {
  LinuxNpu npu;
  hil::ethosu::linux_driver::UserDriver driver{npu};
  FaultySystem system{driver};
};

/// Fresh after reset_npu().
World& world();

}  // namespace fake
