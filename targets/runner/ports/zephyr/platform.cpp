// The runner on Zephyr.
#include "ports/platform.h"

#include <zephyr/kernel.h>

#include "ports/cortex_m/system_counter.h"
#include "ports/semihosted.h"
#include "ports/semihosting.h"
#include "ports/zephyr/main.h"
#include "ports/zephyr/pool.h"

extern "C" const uint8_t hil_build_id_start[], hil_build_id_end[];

namespace hil {

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
  start_system_counter();
  return read_system_counter;
#elif defined(CONFIG_TIMER_HAS_64BIT_CYCLE_COUNTER)
  return [] { return k_cycle_get_64(); };
#else
  return nullptr;
#endif
}

uint64_t peak_resident() { return 0; }

StackUse stack_use() {
  StackUse use;
#if defined(CONFIG_INIT_STACKS) && defined(CONFIG_THREAD_STACK_INFO)
  size_t unused = 0;
  if (k_thread_stack_space_get(k_current_get(), &unused) == 0) {
    use.total = CONFIG_MAIN_STACK_SIZE;
    use.high_water = use.total - unused;
  }
#endif
  return use;
}

Span<const uint8_t> build_id() {
  const size_t size = distance(hil_build_id_start, hil_build_id_end);
  if (size <= kBuildIdNoteHeader) return {};
  return {hil_build_id_start + kBuildIdNoteHeader, size - kBuildIdNoteHeader};
}

}  // namespace platform

}  // namespace hil

void hil_runner_main(void) { hil_runner_end(hil::run_command_line()); }

void hil_runner_end(int status) {
#if defined(CONFIG_HIL_LOG_ON_CONSOLE)
  // Twister takes the end of the simulation for a crash, and ends it itself after the last line.
  if (status == 0) k_sleep(K_FOREVER);
#endif
  hil::semihosting::exit(status);
}
