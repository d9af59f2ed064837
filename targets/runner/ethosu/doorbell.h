// How a guest reaches an NPU that is a program on the host. The host's side is
// harness/npu/doorbell.py; both describe one format, and each says so.
//
// 1. The guest's DDR is a file that the host maps (QEMU: -object memory-backend-file,id=ddr,
//    size=2G,mem-path=F,share=on -machine memory-backend=ddr). Everything that the NPU touches,
//    the Mailbox included, lies in it: weights, command stream, scratch, fast scratch.
// 2. Two FIFOs in the guest's current directory, opened through semihosting: the guest writes a
//    Ring to kRequestFifo and blocks reading a u32 from kAnswerFifo.
// 3. The host reads the Mailbox at Ring.mailbox, does what `command` asks, writes the fields
//    marked (host), and only then answers with Ring.sequence.
//
// All words are little-endian; addresses are the guest's. There is no cache to maintain.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hil::ethosu::doorbell {

constexpr char kRequestFifo[] = "npu-request";
constexpr char kAnswerFifo[] = "npu-answer";
// Of a native program, which has no DDR of its own: memory to map, at this address for the host.
constexpr char kMemoryFile[] = "npu-memory";
constexpr uint64_t kMemoryBase = 0x40000000;

constexpr uint32_t kRingMagic = 0x474E4952;     // "RING"
constexpr uint32_t kMailboxMagic = 0x55504E48;  // "HNPU"
constexpr uint32_t kVersion = 1;

struct Ring {
  uint32_t magic = kRingMagic;
  uint32_t sequence = 0;
  uint64_t mailbox = 0;
};
static_assert(sizeof(Ring) == 16, "both sides agree");

enum class Command : uint32_t {
  Identify = 1,  // answer with npu_config and npu_id
  Run = 2,       // run the command stream
};

enum class Result : uint32_t {
  Ok = 0,
  Fault = 1,        // the NPU stopped: npu_status, qread and message say how
  Refused = 2,      // the request itself is wrong: message
  Unsupported = 3,  // the NPU has it, the stand-in does not: message
};

constexpr size_t kRegions = 8;
constexpr size_t kMessageBytes = 192;

struct Region {
  uint64_t address;
  uint64_t bytes;  // 0: the region is not there
};

struct Mailbox {
  uint32_t magic;               // 0    kMailboxMagic
  uint32_t version;             // 4    kVersion
  uint32_t command;             // 8    Command
  uint32_t result;              // 12   Result (host)
  uint32_t npu_config;          // 16   CONFIG: MACs as log2 [3:0], product [31:28] (host)
  uint32_t npu_id;              // 20   ID: architecture version [31:16] (host)
  uint32_t npu_status;          // 24   STATUS as the NPU would show it (host)
  uint32_t qread;               // 28   bytes of the command stream that were read (host)
  uint64_t commands;            // 32   address of the command stream, without driver actions
  uint64_t commands_bytes;      // 40
  uint32_t region_count;        // 48   how many of `regions` count
  uint32_t reserved;            // 52   0
  Region regions[kRegions];     // 56   0 weights, 1 scratch, 2 fast scratch
  uint64_t cycles;              // 184  0: the stand-in gives results, not time (host)
  char message[kMessageBytes];  // 192  UTF-8, ends with a zero (host)
};
static_assert(offsetof(Mailbox, commands) == 32 && offsetof(Mailbox, regions) == 56 &&
                  offsetof(Mailbox, cycles) == 184 && sizeof(Mailbox) == 384,
              "both sides agree");

}  // namespace hil::ethosu::doorbell
