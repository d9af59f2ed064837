// The NPU of a native program: the functional model on the other side of the doorbell
// (ethosu/doorbell.h), whose files are in the current directory.
#pragma once

#include <map>

#include "ethosu/doorbell.h"
#include "ethosu/linux/user_driver.h"

namespace hil::ethosu::linux_driver {

class DoorbellNpu final : public Npu {
 public:
  DoorbellNpu() = default;
  ~DoorbellNpu();
  DoorbellNpu(const DoorbellNpu&) = delete;
  DoorbellNpu& operator=(const DoorbellNpu&) = delete;

  bool identify(uint32_t* config, uint32_t* id) override;
  size_t sram_bytes() override { return size_t{4} << 20; }
  uint8_t* take(size_t bytes) override;
  void give_back(uint8_t* memory) override;
  void start(Span<const uint8_t> commands, Span<const Span<uint8_t>> regions) override;
  bool ended(int64_t timeout_ns, Ending* out) override;

 private:
  bool reach();
  bool ring(doorbell::Command command);
  bool answered(int64_t timeout_ns, bool* sound);
  uint64_t address(const uint8_t* memory) const;

  int request_ = -1, answer_ = -1;
  uint8_t* memory_ = nullptr;
  size_t size_ = 0;
  std::map<size_t, size_t> taken_;  // end by begin
  doorbell::Mailbox* mailbox_ = nullptr;
  uint32_t sequence_ = 0;
  bool rung_ = false;
};

}  // namespace hil::ethosu::linux_driver
