// The runner on a bare Cortex-M board.
#include "ports/platform.h"

#include "host_link.h"
#include "pool.h"
#if defined(HIL_SYSTEM_COUNTER_BASE)
#include "system_counter.h"
#elif defined(HIL_SERIAL)
#include "cycle_counter.h"
#endif

extern "C" {
extern uint8_t __build_id_start[], __build_id_end[];
extern uint8_t __stack_limit[], __stack_top[];
[[noreturn]] void hil_main();
}

namespace hil {

size_t stack_high_water();

namespace {

HIL_POOL(method) uint8_t method_pool[HIL_METHOD_POOL_BYTES];
HIL_POOL(temp) uint8_t temp_pool[HIL_TEMP_POOL_BYTES];
HIL_POOL(files) uint8_t file_pool[HIL_FILE_POOL_BYTES];

constexpr size_t kBuildIdNoteHeader = 16;  // name size, description size, type, "GNU\0"

size_t distance(const uint8_t* from, const uint8_t* to) {
  return static_cast<size_t>(reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from));
}

}  // namespace

namespace platform {

Pools pools() {
  return {{method_pool, sizeof(method_pool)},
          {temp_pool, sizeof(temp_pool)},
          {file_pool, sizeof(file_pool)}};
}

Clock clock() {
#if defined(HIL_SYSTEM_COUNTER_BASE)
  return read_system_counter;
#elif defined(HIL_SERIAL)
  return start_cycle_counter() ? read_cycle_counter : nullptr;
#else
  return nullptr;
#endif
}

uint64_t peak_resident() { return 0; }

StackUse stack_use() { return {stack_high_water(), distance(__stack_limit, __stack_top)}; }

Span<const uint8_t> build_id() {
  const size_t size = distance(__build_id_start, __build_id_end);
  if (size <= kBuildIdNoteHeader) return {};
  return {__build_id_start + kBuildIdNoteHeader, size - kBuildIdNoteHeader};
}

}  // namespace platform

}  // namespace hil

void hil_main() {
#ifdef HIL_SYSTEM_COUNTER_BASE
  hil::start_system_counter();
#endif
  hil::end_run(hil::run_command_line());
}
