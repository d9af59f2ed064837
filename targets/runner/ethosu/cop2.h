// Container of a command stream for a driver of Linux ("COP2"), which says for which NPU it is and
// what it wants of it. Read by the driver, and here to tell a user's mistake before.
// Format: regor's custom_operator_ethosu.hpp (ethos-u-vela 5.1.0) and bytes that Vela wrote.
// "COP2", u16 1, u16 0, u64 bytes behind these 16; one entry, u32 type 1, u32 bytes behind these
// 24; u32 bytes of metadata; metadata; the stream. Metadata: "VEUM", u16 1, u16 0, u32 bytes that
// follow (20 or more), u32 CONFIG, u32 ID, u32 features, u64 bytes of cache; then padding.
#pragma once

#include "core/error.h"
#include "core/span.h"

namespace hil::ethosu {

struct Cop2 {
  uint32_t config = 0;  // as the NPU's CONFIG register of the product it was compiled for
  uint32_t id = 0;      // as the NPU's ID register
  uint32_t features = 0;
  uint64_t cache_bytes = 0;  // of the device's SRAM, region 2
  Span<const uint8_t> commands;
};

/// Checks all of `bytes`, which must outlive `out`. Logs what is wrong, and where.
Error read_cop2(Span<const uint8_t> bytes, Cop2* out);

}  // namespace hil::ethosu
