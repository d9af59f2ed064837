#include "fake_npu.h"

#include <cstring>

#include "ethosu/hooks.h"
#include "ethosu/io_memcpy.h"
#include "ethosu/platform.h"

namespace fake {

namespace {
Npu current;
}

Npu& npu() { return current; }
void reset_npu() { current = Npu(); }

}  // namespace fake

extern "C" {

void arm_ethos_io_memcpy(void* destination, const void* source, size_t bytes) {
  ++fake::current.copies;
  fake::current.bytes_copied += bytes;
  std::memcpy(destination, source, bytes);
}
void EthosUBackend_execute_begin() { ++fake::current.hooks_begun; }
void EthosUBackend_execute_end() { ++fake::current.hooks_ended; }

}  // extern "C"

namespace hil::ethosu::platform {

Error open(const DelegateSetup&, const VelaStream&, void** state) {
  ++fake::current.opened;
  *state = &fake::current;
  return fake::current.open_error;
}

Error invoke(void* state, const VelaStream& stream, Span<uint8_t> scratch) {
  ++fake::current.invoked;
  fake::current.scratch = scratch.data();
  if (state != &fake::current) return Error::Internal;
  return fake::current.work ? fake::current.work(stream, scratch) : Error::Ok;
}

void close(void* state) {
  if (state == &fake::current) ++fake::current.closed;
}

}  // namespace hil::ethosu::platform
