// Checks and messages: ethos-u-core-driver, src/ethosu_driver.c and ethosu_device_*.c.
#include "ethosu/driver.h"

#include "core/log.h"
#include "ethosu/payload.h"
#include "ethosu/status.h"

namespace hil::ethosu {

namespace {

constexpr uint64_t kAlignment = 16;
constexpr unsigned kU85 = 2;

unsigned field(uint32_t word, unsigned low, unsigned bits) {
  return word >> low & ((1u << bits) - 1);
}

/// False, after logging, when a field of the configurations differs.
bool same(const char* name, unsigned actual, unsigned wanted) {
  if (actual == wanted) return true;
  HIL_LOG(Error, "NPU config mismatch. npu.%s=%u, optimizer.%s=%u", name, actual, name, wanted);
  return false;
}

bool verify_addresses(Span<const uint8_t> commands, Span<const Region> regions) {
  const uintptr_t stream = reinterpret_cast<uintptr_t>(commands.data());
  if (stream % kAlignment != 0) {
    HIL_LOG(Error, "Command stream addr 0x%llx not aligned to 16 bytes",
            static_cast<unsigned long long>(stream));
    return false;
  }
  for (size_t i = 0; i < regions.size(); ++i) {
    if (regions[i].address % kAlignment != 0) {
      HIL_LOG(Error, "Base addr %u: 0x%llx not aligned to 16 bytes", static_cast<unsigned>(i),
              static_cast<unsigned long long>(regions[i].address));
      return false;
    }
    if (regions[i].address == 0 && regions[i].bytes != 0) {
      HIL_LOG(Error, "Base addr %u is null but has %llu bytes", static_cast<unsigned>(i),
              static_cast<unsigned long long>(regions[i].bytes));
      return false;
    }
  }
  return true;
}

Error run(Device& device, Span<const uint8_t> commands, Span<const Region> regions) {
  Fault fault;
  const Error error = device.run(commands, regions, &fault);
  if (error == Error::AccessFailed) {
    HIL_LOG(Error, "NPU error(s) occured during inference.");  // sic
    HIL_LOG(Error, "NPU status=0x%08x, qread=%u, cmd_end_reached=%u",
            static_cast<unsigned>(fault.status), static_cast<unsigned>(fault.qread),
            (fault.status & status::kEndReached) != 0 ? 1u : 0u);
  } else if (error == Error::OutOfResources) {
    HIL_LOG(Error, "NPU inference timed out.");
  }
  const bool stuck = error == Error::AccessFailed || error == Error::OutOfResources;
  // Why the run failed stays the answer; the next invocation resets again before it runs.
  if (stuck && device.reset() != Error::Ok) HIL_LOG(Error, "Failed to reset the NPU after it");
  return error;
}

Error invoke_checked(Device& device, Span<const uint8_t> bytes, Span<const Region> regions) {
  Payload payload;
  HIL_TRY(read_payload(bytes, &payload));
  if (const Error error = device.reset(); error != Error::Ok) {
    HIL_LOG(Error, "Failed to request power");
    return error;
  }
  uint32_t config = 0;
  uint32_t id = 0;
  device.identify(&config, &id);
  if (payload.has_config && !verify_config(config, id, payload.config, payload.id)) {
    return Error::InvalidProgram;
  }
  if (!verify_addresses(payload.commands, regions)) return Error::InvalidProgram;
  return run(device, payload.commands, regions);
}

}  // namespace

bool verify_config(uint32_t actual_config, uint32_t actual_id, uint32_t wanted_config,
                   uint32_t wanted_id) {
  const auto both = [&](const char* name, unsigned low, unsigned bits) {
    return same(name, field(actual_config, low, bits), field(wanted_config, low, bits));
  };
  const unsigned product = field(actual_config, 28, 4);
  bool fits = both("product", 28, 4);
  fits &= both("macs_per_cc", 0, 4);
  fits &= both("cmd_stream_version", 4, 4);
  if (fits && product == kU85) {  // these bits are the SHRAM size of U55 and U65
    fits &= both("num_axi_sram", 8, 2);
    fits &= both("num_axi_ext", 10, 1);
  }
  if (field(wanted_config, 27, 1) > field(actual_config, 27, 1)) {
    fits = both("custom_dma", 27, 1);
  }
  const unsigned major = field(actual_id, 28, 4), minor = field(actual_id, 20, 8);
  const unsigned wanted_major = field(wanted_id, 28, 4), wanted_minor = field(wanted_id, 20, 8);
  if (major != wanted_major || minor < wanted_minor) {
    HIL_LOG(Error, "NPU arch mismatch. npu.arch=%u.%u.%u, optimizer.arch=%u.%u.%u", major, minor,
            field(actual_id, 16, 4), wanted_major, wanted_minor, field(wanted_id, 16, 4));
    fits = false;
  }
  return fits;
}

Error invoke(Device& device, Span<const uint8_t> payload, Span<const Region> regions) {
  const Error error = invoke_checked(device, payload, regions);
  if (error == Error::Ok) return Error::Ok;
  HIL_LOG(Error, "Failed to invoke inference.");
  return error == Error::NotSupported ? error : Error::InvalidProgram;
}

}  // namespace hil::ethosu
