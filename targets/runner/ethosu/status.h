// Bits of the NPU's STATUS register (ethos-u-vela, ethosu/vela/ethos_u55_regs; BRANCH_FAULT is
// the U85's, ethos-u-core-driver).
#pragma once

#include <cstdint>

namespace hil::ethosu::status {

constexpr uint32_t kRunning = 1u << 0;
constexpr uint32_t kIrqRaised = 1u << 1;
constexpr uint32_t kBusError = 1u << 2;
constexpr uint32_t kInReset = 1u << 3;
constexpr uint32_t kParseError = 1u << 4;
constexpr uint32_t kEndReached = 1u << 5;
constexpr uint32_t kWatchdogFault = 1u << 7;
constexpr uint32_t kEccFault = 1u << 8;
constexpr uint32_t kBranchFault = 1u << 9;
constexpr uint32_t kFaults = kBusError | kParseError | kWatchdogFault | kEccFault | kBranchFault;

}  // namespace hil::ethosu::status
