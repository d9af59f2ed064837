// One invocation of a delegate through the driver's public interface.
#include "core/log.h"
#include "ethosu/in_scratch.h"
#include "ethosu/platform.h"

extern "C" {
#include <ethosu_driver.h>
}

extern "C" {
extern uint8_t* ethosu_fast_scratch;
extern size_t ethosu_fast_scratch_size;
}

namespace hil::ethosu::platform {

namespace {

uint64_t address(const void* at) { return reinterpret_cast<uintptr_t>(at); }

Error invoke(void*, const VelaStream& stream, Span<uint8_t> scratch) {
  ethosu_driver* driver = ethosu_reserve_driver();
  if (driver == nullptr) {
    HIL_LOG(Error, "ethosu_reserve_driver failed");
    return Error::InvalidState;
  }
  const uint64_t bases[] = {address(stream.weights.data()), address(scratch.data()),
                            address(ethosu_fast_scratch)};
  const size_t sizes[] = {stream.weights.size(), scratch.size(), ethosu_fast_scratch_size};
  const int result =
      ethosu_invoke_v3(driver, stream.commands.data(), static_cast<int>(stream.commands.size()),
                       bases, sizes, 3, nullptr);
  ethosu_release_driver(driver);
  return result == 0 ? Error::Ok : Error::InvalidProgram;
}

}  // namespace

Placement placement() { return Placement::Scratch; }

Error open(const DelegateSetup&, const VelaStream&, void** state) {
  *state = nullptr;
  return Error::Ok;
}

Error execute(void* state, const VelaStream& stream, Span<Value* const> args, Arena& temp) {
  return execute_in_scratch(stream, args, temp, invoke, state);
}

void close(void*) {}

}  // namespace hil::ethosu::platform
