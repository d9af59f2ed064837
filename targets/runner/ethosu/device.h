// An NPU that can run a command stream: the real one behind its registers, or a stand-in.
#pragma once

#include "core/error.h"
#include "core/span.h"

namespace hil::ethosu {

/// Base pointer i and the memory behind it: 0 weights, 1 scratch, 2 fast scratch
/// (region numbers of ExecuTorch's delegate).
struct Region {
  uint64_t address = 0;
  uint64_t bytes = 0;
};

/// Why a command stream did not end as it should.
struct Fault {
  uint32_t status = 0;  // the NPU's STATUS register
  uint32_t qread = 0;   // bytes of the command stream it had read
};

class Device {
 public:
  /// Powered, in a known state. Logs why not.
  virtual Error reset() = 0;
  /// The CONFIG and ID registers: which product, how many MACs.
  virtual void identify(uint32_t* config, uint32_t* id) = 0;
  /// Runs to the end. AccessFailed fills in `fault`, OutOfResources is a time-out;
  /// NotSupported only from a stand-in that does not know a command, which it logs.
  virtual Error run(Span<const uint8_t> commands, Span<const Region> regions, Fault* fault) = 0;

 protected:
  ~Device() = default;
};

}  // namespace hil::ethosu
