#include "fake_npu.h"

#include "ethosu/in_scratch.h"
#include "ethosu/platform.h"

namespace fake {

namespace {
Npu current;
}

Npu& npu() { return current; }
void reset_npu() { current = Npu(); }

}  // namespace fake

namespace hil::ethosu::platform {

namespace {

Error invoke(void* state, const VelaStream& stream, Span<uint8_t> scratch) {
  ++fake::current.invoked;
  fake::current.scratch = scratch.data();
  if (state != &fake::current) return Error::Internal;
  return fake::current.work ? fake::current.work(stream, scratch) : Error::Ok;
}

}  // namespace

Placement placement() { return Placement::Scratch; }

Error open(const DelegateSetup&, const VelaStream&, void** state) {
  ++fake::current.opened;
  *state = &fake::current;
  return fake::current.open_error;
}

Error execute(void* state, const VelaStream& stream, Span<Value* const> args, Arena& temp) {
  return execute_in_scratch(stream, args, temp, invoke, state);
}

void close(void* state) {
  if (state == &fake::current) ++fake::current.closed;
}

}  // namespace hil::ethosu::platform
