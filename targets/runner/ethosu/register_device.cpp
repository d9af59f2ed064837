// Offsets and bits: ethos-u-vela, ethosu/vela/ethos_u55_regs. Sequence and the values for the
// memory ports: ethos-u-core-driver, src/ethosu_device_{u55_u65,u85}.c and its ethosu_config_*.h.
#include "ethosu/register_device.h"

#include "core/log.h"
#include "ethosu/status.h"

namespace hil::ethosu {

namespace {

enum Register : uint32_t {
  kId = 0x00,
  kStatus = 0x04,
  kCommand = 0x08,
  kReset = 0x0C,
  kQueueBase = 0x10,
  kQueueRead = 0x18,
  kQueueConfig = 0x1C,
  kQueueSize = 0x20,
  kProtection = 0x24,
  kConfig = 0x28,
  kRegionConfig = 0x3C,
  kAxiLimit0 = 0x40,     // U55, U65: four of them
  kMemoryAttr0 = 0x40,   // U85: four of them
  kBasePointer0 = 0x80,  // low and high word of each
};

constexpr uint32_t kRun = 1u << 0;
constexpr uint32_t kClearIrq = 1u << 1;
constexpr uint32_t kClockAndPowerOff = 1u << 2 | 1u << 3;
constexpr uint32_t kSecurePrivileged = 1;  // RESET, PROT: bit 0 privileged, bit 1 non-secure
constexpr uint32_t kResetPolls = 100000;
constexpr size_t kBasePointers = 8;

constexpr uint32_t kQueuePort = 2;  // second AXI port
// Two bits for each region: 0 through the second port, 1 and 2 through the first.
constexpr uint32_t kRegionPorts = 3u << 0 | 0u << 2 | 1u << 4 | 0x5540u;
constexpr uint32_t kAxiLimit = (32u - 1) << 16 | (16u - 1) << 24;  // outstanding reads, writes
constexpr uint32_t kSecondPort = 1u << 2;                          // in MEM_ATTR

}  // namespace

void RegisterDevice::command(uint32_t bits) {
  registers_.write(kCommand, (registers_.read(kCommand) & kClockAndPowerOff) | bits);
}

void RegisterDevice::identify(uint32_t* config, uint32_t* id) {
  *config = registers_.read(kConfig);
  *id = registers_.read(kId);
}

Error RegisterDevice::reset() {
  registers_.write(kReset, kSecurePrivileged);
  for (uint32_t i = 0; (registers_.read(kStatus) & status::kInReset) != 0; ++i) {
    if (i == kResetPolls) {
      HIL_LOG(Error, "Soft reset timed out");
      return Error::AccessFailed;
    }
  }
  if ((registers_.read(kProtection) & 3u) != kSecurePrivileged) {
    HIL_LOG(Error, "Failed to switch security state and privilege level");
    return Error::AccessFailed;
  }
  set_up_memory_ports();
  registers_.write(kCommand, 0);  // clock and power stay on while it works
  return Error::Ok;
}

void RegisterDevice::set_up_memory_ports() {
  const uint32_t product = registers_.read(kConfig) >> 28;
  wide_addresses_ = product != 0;  // U55 has 32 address bits, U65 and U85 have 40
  registers_.write(kQueueConfig, kQueuePort);
  registers_.write(kRegionConfig, kRegionPorts);
  for (uint32_t i = 0; i < 4; ++i) {
    if (product == 2) {
      registers_.write(kMemoryAttr0 + 4 * i, i < 2 ? 0 : kSecondPort);
    } else {
      registers_.write(kAxiLimit0 + 4 * i, kAxiLimit);
    }
  }
}

void RegisterDevice::set_base(uint32_t low_register, uint64_t address) {
  registers_.write(low_register, static_cast<uint32_t>(address));
  if (wide_addresses_) registers_.write(low_register + 4, static_cast<uint32_t>(address >> 32));
}

Error RegisterDevice::run(Span<const uint8_t> commands, Span<const Region> regions, Fault* fault) {
  if (regions.size() > kBasePointers) return Error::InvalidArgument;
  set_base(kQueueBase, reinterpret_cast<uintptr_t>(commands.data()));
  registers_.write(kQueueSize, static_cast<uint32_t>(commands.size()));
  for (size_t i = 0; i < regions.size(); ++i) {
    set_base(kBasePointer0 + 8 * static_cast<uint32_t>(i), regions[i].address);
  }
  // Memory must be as the program sees it before the NPU looks. The start-up leaves caches off.
  __sync_synchronize();
  command(kRun);
  uint32_t now = registers_.read(kStatus);
  for (uint32_t i = 0; (now & status::kIrqRaised) == 0; ++i) {
    if (i == polls_) return Error::OutOfResources;
    now = registers_.read(kStatus);
  }
  __sync_synchronize();
  command(kClearIrq);
  if ((now & status::kFaults) == 0 && (now & status::kEndReached) != 0) {
    registers_.write(kCommand, kClockAndPowerOff);
    return Error::Ok;
  }
  fault->status = now;
  fault->qread = registers_.read(kQueueRead);
  return Error::AccessFailed;
}

}  // namespace hil::ethosu
