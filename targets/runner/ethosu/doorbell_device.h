// The NPU as a program on the host, reached by doorbell.h.
#pragma once

#include "ethosu/device.h"
#include "ethosu/doorbell.h"

namespace hil::ethosu {

/// The way to the host.
class Bell {
 public:
  /// Waits for the answer; false when there is nobody to answer.
  virtual bool ring(const doorbell::Ring& ring, uint32_t* answer) = 0;

 protected:
  ~Bell() = default;
};

class DoorbellDevice final : public Device {
 public:
  /// `mailbox` lies in the memory that the host shares.
  constexpr DoorbellDevice(Bell& bell, doorbell::Mailbox& mailbox)
      : bell_(bell), mailbox_(mailbox) {}

  Error reset() override;
  void identify(uint32_t* config, uint32_t* id) override;
  Error run(Span<const uint8_t> commands, Span<const Region> regions, Fault* fault) override;

 private:
  Error call(doorbell::Command command);

  Bell& bell_;
  doorbell::Mailbox& mailbox_;
  uint32_t sequence_ = 0;
};

}  // namespace hil::ethosu
