// A Cortex-M that drives the NPU itself, bare or under Zephyr (whose own Ethos-U driver is not
// used): by its registers, or by the doorbell of the stand-in. pool.h is the port's.
#include "core/log.h"
#include "ethosu/driver.h"
#include "ethosu/in_scratch.h"
#include "ethosu/platform.h"
#include "pool.h"
#if HIL_ETHOSU_DOORBELL
#include "ethosu/doorbell_device.h"
#include "ports/semihosting.h"
#else
#include "ethosu/register_device.h"
#endif

namespace hil::ethosu::platform {

namespace {

#if HIL_ETHOSU_FAST_SCRATCH_BYTES > 0
HIL_POOL(fast_scratch) uint8_t fast_scratch_pool[HIL_ETHOSU_FAST_SCRATCH_BYTES];
Region fast_scratch() {
  return {reinterpret_cast<uintptr_t>(fast_scratch_pool), sizeof(fast_scratch_pool)};
}
#else
Region fast_scratch() { return {}; }
#endif

#if HIL_ETHOSU_DOORBELL

class SemihostingBell final : public Bell {
 public:
  bool ring(const doorbell::Ring& ring, uint32_t* answer) override {
    if (!reach()) return false;
    return semihosting::write(request_, reinterpret_cast<const uint8_t*>(&ring), sizeof(ring)) &&
           semihosting::read(answer_, reinterpret_cast<uint8_t*>(answer), sizeof(*answer));
  }

 private:
  /// The answers first: opening them creates no file where there is no stand-in.
  bool reach() {
    using semihosting::Mode;
    if (answer_ < 0) answer_ = semihosting::open(doorbell::kAnswerFifo, Mode::ReadBinary);
    if (answer_ >= 0 && request_ < 0) {
      request_ = semihosting::open(doorbell::kRequestFifo, Mode::WriteBinary);
    }
    return request_ >= 0;
  }

  int request_ = -1;
  int answer_ = -1;
};

HIL_POOL(doorbell) doorbell::Mailbox mailbox;

Device& device() {
  static SemihostingBell bell;
  static DoorbellDevice npu(bell, mailbox);
  return npu;
}

#else

Device& device() {
  static MappedRegisters registers(HIL_ETHOSU_BASE);
  static RegisterDevice npu(registers);
  return npu;
}

#endif

Region region(Span<const uint8_t> memory) {
  return {reinterpret_cast<uintptr_t>(memory.data()), memory.size()};
}

Error invoke(void*, const VelaStream& stream, Span<uint8_t> scratch) {
  const Region regions[] = {region(stream.weights),
                            region(Span<const uint8_t>(scratch.data(), scratch.size())),
                            fast_scratch()};
  return ethosu::invoke(device(), stream.commands, Span<const Region>(regions, 3));
}

}  // namespace

Placement placement() { return Placement::Scratch; }

Error open(const DelegateSetup&, const VelaStream&, void** state) {
  *state = nullptr;
  return Error::Ok;
}

Error execute(void* state, const VelaStream& stream, Span<Value* const> args, Arena& temp) {
  return execute_in_scratch(stream, args, temp, invoke, state);
}

void close(void*) {}

}  // namespace hil::ethosu::platform
