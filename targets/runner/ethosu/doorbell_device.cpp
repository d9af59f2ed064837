#include "ethosu/doorbell_device.h"

#include <cstring>

#include "core/log.h"

namespace hil::ethosu {

using doorbell::Command;
using doorbell::Mailbox;
using doorbell::Result;

/// Rings and waits; the mailbox then holds the answer.
Error DoorbellDevice::call(Command command) {
  mailbox_.magic = doorbell::kMailboxMagic;
  mailbox_.version = doorbell::kVersion;
  mailbox_.command = static_cast<uint32_t>(command);
  mailbox_.result = static_cast<uint32_t>(Result::Refused);
  mailbox_.message[0] = '\0';
  doorbell::Ring ring;
  ring.sequence = ++sequence_;
  ring.mailbox = reinterpret_cast<uintptr_t>(&mailbox_);
  uint32_t answer = 0;
  __sync_synchronize();
  const bool answered = bell_.ring(ring, &answer);
  __sync_synchronize();
  if (!answered || answer != sequence_) {
    HIL_LOG(Error, "the NPU stand-in does not answer");
    return Error::AccessFailed;
  }
  mailbox_.message[doorbell::kMessageBytes - 1] = '\0';
  return Error::Ok;
}

Error DoorbellDevice::reset() {
  const Error error = call(Command::Identify);
  if (error == Error::Ok && mailbox_.result == static_cast<uint32_t>(Result::Ok)) {
    if (sequence_ == 1) {
      HIL_LOG(Info, "ethos-u : cycle_cnt : 0 cycles (a functional stand-in: results, not time)");
    }
    return Error::Ok;
  }
  HIL_LOG(Error, "Failed to initialize Ethos-U device: %s", mailbox_.message);
  return Error::InvalidState;
}

void DoorbellDevice::identify(uint32_t* config, uint32_t* id) {
  *config = mailbox_.npu_config;
  *id = mailbox_.npu_id;
}

Error DoorbellDevice::run(Span<const uint8_t> commands, Span<const Region> regions, Fault* fault) {
  if (regions.size() > doorbell::kRegions) return Error::InvalidArgument;
  mailbox_.commands = reinterpret_cast<uintptr_t>(commands.data());
  mailbox_.commands_bytes = commands.size();
  mailbox_.region_count = static_cast<uint32_t>(regions.size());
  mailbox_.reserved = 0;
  for (size_t i = 0; i < doorbell::kRegions; ++i) {
    const Region region = i < regions.size() ? regions[i] : Region();
    mailbox_.regions[i] = {region.address, region.bytes};
  }
  if (call(Command::Run) != Error::Ok) return Error::InvalidState;
  switch (static_cast<Result>(mailbox_.result)) {
    case Result::Ok:
      return Error::Ok;
    case Result::Fault:
      fault->status = mailbox_.npu_status;
      fault->qread = mailbox_.qread;
      HIL_LOG(Error, "the NPU stand-in stopped: %s", mailbox_.message);
      return Error::AccessFailed;
    case Result::Unsupported:
      HIL_LOG(Error, "the NPU stand-in does not support: %s", mailbox_.message);
      return Error::NotSupported;
    default:
      HIL_LOG(Error, "the NPU stand-in refused: %s", mailbox_.message);
      return Error::InvalidState;
  }
}

}  // namespace hil::ethosu
