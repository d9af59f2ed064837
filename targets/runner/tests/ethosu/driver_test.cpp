// The driver on the NPU's registers (a double of them) and on the stand-in's doorbell: what is
// written where, and each message of the driver.
#include "ethosu/driver.h"

#include <doctest/doctest.h>

#include <map>

#include "ethosu/doorbell_device.h"
#include "ethosu/register_device.h"
#include "ethosu/status.h"
#include "fake_platform.h"
#include "vela_builder.h"

namespace {

using hil::Error;
using hil::ethosu::Region;
namespace status = hil::ethosu::status;

/// The registers of an NPU that ends every stream at once with `end_status`.
class RegisterDouble final : public hil::ethosu::Registers {
 public:
  uint32_t read(uint32_t offset) override { return words[offset]; }
  void write(uint32_t offset, uint32_t value) override {
    words[offset] = value;
    if (offset == 0x0C) {
      ++resets;
      words[0x24] = obeys ? value : 2;
      words[0x04] = stays_in_reset ? status::kInReset : 0;
    }
    if (offset == 0x08 && (value & 1) != 0) {
      ++runs;
      words[0x04] = end_status;
      stays_in_reset = stays_in_reset || breaks;
    }
    if (offset == 0x08 && (value & 2) != 0) words[0x04] &= ~status::kIrqRaised;
  }

  std::map<uint32_t, uint32_t> words = {{0x28, build::kU55_128}, {0x00, build::kU55Id}};
  uint32_t end_status = status::kIrqRaised | status::kEndReached;
  bool obeys = true, stays_in_reset = false, breaks = false;
  int resets = 0, runs = 0;
};

struct Registered {
  RegisterDouble registers;
  hil::ethosu::RegisterDevice device{registers, 10};
  build::Aligned payload{build::payload({0xFFFF, 0})};
  std::vector<Region> regions = {{0x1000, 20}, {0x2000, 64}, {0, 0}};

  Error invoke() {
    fake::take_log();
    return hil::ethosu::invoke(device, {payload.data(), payload.size()},
                               {regions.data(), regions.size()});
  }
  void check_fails(const char* reason) {
    CHECK(invoke() == Error::InvalidProgram);
    const std::string log = fake::take_log();
    CHECK_MESSAGE(fake::contains(log, reason), reason, " missing in ", log);
    CHECK(fake::contains(log, "Failed to invoke inference."));
  }
};

}  // namespace

TEST_CASE("registers: a stream is set up, started and acknowledged") {
  Registered npu;
  REQUIRE(npu.invoke() == Error::Ok);
  auto& words = npu.registers.words;
  CHECK(words[0x10] == static_cast<uint32_t>(reinterpret_cast<uintptr_t>(npu.payload.data()) + 32));
  CHECK(words[0x20] == 8);
  CHECK(words[0x80] == 0x1000);
  CHECK(words[0x88] == 0x2000);
  CHECK(words[0x90] == 0);
  CHECK(words.count(0x84) == 0);  // the U55 has 32 address bits
  CHECK(words[0x3C] == 0x5553);
  CHECK(words[0x1C] == 2);
  CHECK(words[0x40] == 0x0F1F0000);
  CHECK((words[0x04] & status::kIrqRaised) == 0);
  CHECK(words[0x08] == 0xC);
  CHECK(npu.registers.resets == 1);
  CHECK(npu.registers.runs == 1);
}

TEST_CASE("registers: the U85 has wide addresses and memory attributes") {
  Registered npu;
  npu.registers.words[0x28] = 0x20000118;
  npu.registers.words[0x00] = 0x20007000;
  npu.payload.~Aligned();
  new (&npu.payload) build::Aligned(build::payload({0xFFFF}, 0x20000118, 0x20007000));
  npu.regions[1].address = 0x1234567890;
  REQUIRE(npu.invoke() == Error::Ok);
  CHECK(npu.registers.words[0x88] == 0x34567890);
  CHECK(npu.registers.words[0x8C] == 0x12);
  CHECK(npu.registers.words[0x40] == 0);
  CHECK(npu.registers.words[0x48] == 4);
}

TEST_CASE("registers: faults, time-outs and an NPU that will not be reset") {
  for (uint32_t fault : {status::kBusError, status::kParseError, status::kWatchdogFault,
                         status::kEccFault, status::kBranchFault}) {
    Registered npu;
    npu.registers.end_status = status::kIrqRaised | status::kEndReached | fault;
    npu.registers.words[0x18] = 12;
    npu.check_fails("NPU error(s) occured during inference.");
    CHECK(npu.registers.resets == 2);
  }
  Registered early;
  early.registers.end_status = status::kIrqRaised;
  early.registers.words[0x18] = 12;
  early.check_fails("NPU status=0x00000002, qread=12, cmd_end_reached=0");
  Registered slow;
  slow.registers.end_status = status::kRunning;
  slow.check_fails("NPU inference timed out.");
  Registered stuck;
  stuck.registers.stays_in_reset = true;
  stuck.check_fails("Soft reset timed out");
  Registered absent;
  absent.registers.obeys = false;
  absent.check_fails("Failed to switch security state and privilege level");
  CHECK(absent.registers.runs == 0);
}

TEST_CASE("registers: an NPU that no reset brings back after a fault says so") {
  Registered npu;
  npu.registers.end_status = status::kIrqRaised | status::kBusError;
  npu.registers.breaks = true;
  npu.check_fails("Failed to reset the NPU after it");
  npu.check_fails("Failed to request power");
  CHECK(npu.registers.runs == 1);
}

TEST_CASE("addresses that the NPU cannot use") {
  Registered npu;
  npu.regions[1].address = 0x2008;
  npu.check_fails("Base addr 1: 0x2008 not aligned to 16 bytes");
  npu.regions[1] = {0, 64};
  npu.check_fails("Base addr 1 is null but has 64 bytes");
  npu.regions[1].address = 0x2000;
  npu.payload.~Aligned();
  build::Bytes askew = build::payload({0xFFFF});
  askew.erase(askew.begin() + 16, askew.begin() + 20);  // one NOP less
  new (&npu.payload) build::Aligned(askew);
  npu.check_fails("not aligned to 16 bytes");
  npu.regions.assign(9, {0x1000, 16});
  npu.check_fails("Failed to invoke");
  CHECK(npu.registers.runs == 0);
}

TEST_CASE("a stream for another NPU") {
  struct {
    uint32_t actual, wanted;
    const char* reason;
  } const cases[] = {
      {0x00001808, 0x00001807, "NPU config mismatch. npu.macs_per_cc=8, optimizer.macs_per_cc=7"},
      {0x00001807, 0x10001807, "NPU config mismatch. npu.product=0, optimizer.product=1"},
      {0x00001817, 0x00001807,
       "NPU config mismatch. npu.cmd_stream_version=1, optimizer.cmd_stream_version=0"},
      {0x00001807, 0x08001807, "NPU config mismatch. npu.custom_dma=0, optimizer.custom_dma=1"},
      {0x20000118, 0x20000218, "NPU config mismatch. npu.num_axi_sram=1, optimizer.num_axi_sram=2"},
      {0x20000118, 0x20000518, "NPU config mismatch. npu.num_axi_ext=0, optimizer.num_axi_ext=1"},
  };
  for (const auto& each : cases) {
    fake::take_log();
    CHECK_FALSE(hil::ethosu::verify_config(each.actual, 0x10066001, each.wanted, 0x10066001));
    const std::string log = fake::take_log();
    CHECK_MESSAGE(fake::contains(log, each.reason), each.reason, " missing in ", log);
  }
  // More SHRAM or a custom DMA than the stream needs is no mismatch; nor is a newer minor version.
  CHECK(hil::ethosu::verify_config(0x08003007, 0x10166001, 0x00001807, 0x10066001));
  CHECK_FALSE(hil::ethosu::verify_config(build::kU55_128, 0x10066001, build::kU55_128, 0x10106001));
  CHECK(
      fake::contains(fake::take_log(), "NPU arch mismatch. npu.arch=1.0.6, optimizer.arch=1.1.0"));
  Registered npu;
  npu.registers.words[0x28] = 0x00001808;
  npu.check_fails("NPU config mismatch");
  CHECK(npu.registers.runs == 0);
}

namespace {

namespace doorbell = hil::ethosu::doorbell;

/// The host at the other end.
class FakeBell final : public hil::ethosu::Bell {
 public:
  bool ring(const doorbell::Ring& ring, uint32_t* answer) override {
    if (deaf) return false;
    auto& box = *reinterpret_cast<doorbell::Mailbox*>(static_cast<uintptr_t>(ring.mailbox));
    seen.push_back(box);
    box.npu_config = build::kU55_128;
    box.npu_id = build::kU55Id;
    const bool runs = box.command == static_cast<uint32_t>(doorbell::Command::Run);
    box.result = static_cast<uint32_t>(runs ? result : identify_result);
    box.npu_status = status::kIrqRaised | status::kParseError;
    box.qread = 24;
    for (char& c : box.message) c = 'x';  // no end on purpose
    *answer = ring.sequence + (late ? 1 : 0);
    return true;
  }

  bool deaf = false, late = false;
  doorbell::Result result = doorbell::Result::Ok, identify_result = doorbell::Result::Ok;
  std::vector<doorbell::Mailbox> seen;
};

struct Doorbell {
  FakeBell bell;
  doorbell::Mailbox mailbox = {};
  hil::ethosu::DoorbellDevice device{bell, mailbox};
  build::Aligned payload{build::payload({0xFFFF, 0})};
  Region regions[3] = {{0x1000, 20}, {0x2000, 64}, {0, 0}};

  Error invoke() {
    fake::take_log();
    return hil::ethosu::invoke(device, {payload.data(), payload.size()}, {regions, 3});
  }
  void check_fails(const char* reason, Error expected = Error::InvalidProgram) {
    CHECK(invoke() == expected);
    const std::string log = fake::take_log();
    CHECK_MESSAGE(fake::contains(log, reason), reason, " missing in ", log);
  }
};

}  // namespace

TEST_CASE("doorbell: the mailbox says what to run on what") {
  Doorbell npu;
  REQUIRE(npu.invoke() == Error::Ok);
  REQUIRE(npu.bell.seen.size() == 2);
  CHECK(fake::contains(fake::take_log(), "cycle_cnt : 0 cycles"));
  CHECK(npu.bell.seen[0].command == static_cast<uint32_t>(doorbell::Command::Identify));
  const doorbell::Mailbox& box = npu.bell.seen[1];
  CHECK(box.magic == doorbell::kMailboxMagic);
  CHECK(box.version == doorbell::kVersion);
  CHECK(box.command == static_cast<uint32_t>(doorbell::Command::Run));
  CHECK(box.commands == reinterpret_cast<uintptr_t>(npu.payload.data()) + 32);
  CHECK(box.commands_bytes == 8);
  CHECK(box.region_count == 3);
  CHECK(box.regions[0].address == 0x1000);
  CHECK(box.regions[1].bytes == 64);
  CHECK(box.regions[7].bytes == 0);
}

TEST_CASE("doorbell: every way the host can answer") {
  Doorbell fault;
  fault.bell.result = doorbell::Result::Fault;
  fault.check_fails("NPU status=0x00000012, qread=24, cmd_end_reached=0");
  Doorbell unsupported;
  unsupported.bell.result = doorbell::Result::Unsupported;
  unsupported.check_fails("the NPU stand-in does not support: xxx", Error::NotSupported);
  Doorbell refused;
  refused.bell.result = doorbell::Result::Refused;
  refused.check_fails("the NPU stand-in refused: xxx");
  Doorbell unknown;
  unknown.bell.result = static_cast<doorbell::Result>(77);
  unknown.check_fails("the NPU stand-in refused");
  Doorbell stranger;
  stranger.bell.identify_result = doorbell::Result::Refused;
  stranger.check_fails("Failed to initialize Ethos-U device");
  Doorbell deaf;
  deaf.bell.deaf = true;
  deaf.check_fails("the NPU stand-in does not answer");
  Doorbell late;
  late.bell.late = true;
  late.check_fails("the NPU stand-in does not answer");
}
