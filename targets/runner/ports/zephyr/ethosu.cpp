// The NPU under Zephyr: driven by its registers, or by the doorbell of the stand-in through
// Zephyr's semihosting. Zephyr's own Ethos-U driver is not used. Built against a stand-in of
// Zephyr, where the doorbell works; never run on the real one.
#include <zephyr/kernel.h>

extern "C" {
#include <zephyr/arch/common/semihost.h>
}

#include "ethosu/driver.h"
#include "ethosu/platform.h"
#include "ports/zephyr/pool.h"
#ifdef CONFIG_HIL_ETHOSU_DOORBELL
#include "ethosu/doorbell_device.h"
#else
#include "ethosu/register_device.h"
#endif

namespace hil::ethosu::platform {

namespace {

#if CONFIG_HIL_ETHOSU_FAST_SCRATCH_BYTES > 0
HIL_POOL("fast_scratch") uint8_t fast_scratch_pool[CONFIG_HIL_ETHOSU_FAST_SCRATCH_BYTES];
Region fast_scratch() {
  return {reinterpret_cast<uintptr_t>(fast_scratch_pool), sizeof(fast_scratch_pool)};
}
#else
Region fast_scratch() { return {}; }
#endif

#ifdef CONFIG_HIL_ETHOSU_DOORBELL

class SemihostBell final : public Bell {
 public:
  bool ring(const doorbell::Ring& ring, uint32_t* answer) override {
    if (!open()) return false;
    return semihost_write(request_, &ring, sizeof(ring)) == 0 &&
           semihost_read(answer_, answer, sizeof(*answer)) == sizeof(*answer);
  }

 private:
  /// The answers first: opening them creates no file where there is no stand-in.
  bool open() {
    if (answer_ < 0) answer_ = semihost_open(doorbell::kAnswerFifo, SEMIHOST_OPEN_RB);
    if (answer_ >= 0 && request_ < 0) {
      request_ = semihost_open(doorbell::kRequestFifo, SEMIHOST_OPEN_WB);
    }
    return request_ >= 0;
  }

  long request_ = -1;
  long answer_ = -1;
};

HIL_POOL("doorbell") doorbell::Mailbox mailbox;

Device& device() {
  static SemihostBell bell;
  static DoorbellDevice npu(bell, mailbox);
  return npu;
}

#else

Device& device() {
  static MappedRegisters registers(CONFIG_HIL_ETHOSU_BASE);
  static RegisterDevice npu(registers);
  return npu;
}

#endif

Region region(Span<const uint8_t> memory) {
  return {reinterpret_cast<uintptr_t>(memory.data()), memory.size()};
}

}  // namespace

Error open(const DelegateSetup&, const VelaStream&, void** state) {
  *state = nullptr;
  return Error::Ok;
}

Error invoke(void*, const VelaStream& stream, Span<uint8_t> scratch) {
  const Region regions[] = {region(stream.weights),
                            region(Span<const uint8_t>(scratch.data(), scratch.size())),
                            fast_scratch()};
  return ethosu::invoke(device(), stream.commands, Span<const Region>(regions, 3));
}

void close(void*) {}

}  // namespace hil::ethosu::platform
