// The platform under the backend in its tests: an NPU that a test can look at and break. With
// fake_hooks.cpp it also counts what goes through arm_ethos_io_memcpy and the hooks.
#pragma once

#include <functional>

#include "ethosu/vela_stream.h"

namespace fake {

struct Npu {
  int opened = 0, closed = 0, invoked = 0, hooks_begun = 0, hooks_ended = 0;
  hil::Error open_error = hil::Error::Ok;
  size_t copies = 0, bytes_copied = 0;
  const uint8_t* scratch = nullptr;
  std::function<hil::Error(const hil::ethosu::VelaStream&, hil::Span<uint8_t>)> work;
};
/// Fresh after reset_npu().
Npu& npu();
void reset_npu();

}  // namespace fake
