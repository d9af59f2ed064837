// Calls and what they return: include/ethosu_driver.h of the module. Zephyr starts the driver
// (drivers/misc/ethos_u), which has no fast memory of its own, so that base pointer 2 is ours.
#include "ethosu/core_driver.h"

#include <ethosu_driver.h>
#include <zephyr/device.h>

#include "core/log.h"

namespace hil::ethosu {

namespace {

constexpr size_t kRegions = 3;

}  // namespace

Error invoke_core_driver(Span<const uint8_t> payload, Span<const Region> regions) {
  // One that did not start is never free, and reserving waits for a free one.
  if (!device_is_ready(DEVICE_DT_GET_ANY(arm_ethos_u))) {
    HIL_LOG(Error, "Zephyr's Ethos-U driver did not start");
    return Error::InvalidState;
  }
  if (regions.size() > kRegions) return Error::InvalidArgument;
  uint64_t addresses[kRegions] = {};
  size_t sizes[kRegions] = {};
  for (size_t i = 0; i < regions.size(); ++i) {
    addresses[i] = regions[i].address;
    sizes[i] = static_cast<size_t>(regions[i].bytes);
  }
  ethosu_driver* const driver = ethosu_reserve_driver();
  if (driver == nullptr) {
    HIL_LOG(Error, "Failed to reserve the Ethos-U driver");
    return Error::InvalidState;
  }
  const int result = ethosu_invoke_v3(driver, payload.data(), static_cast<int>(payload.size()),
                                      addresses, sizes, static_cast<int>(regions.size()), nullptr);
  ethosu_release_driver(driver);
  return result == 0 ? Error::Ok : Error::InvalidProgram;
}

}  // namespace hil::ethosu
