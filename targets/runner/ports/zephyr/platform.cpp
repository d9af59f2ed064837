// The runner on Zephyr, its files and its exit through Zephyr's semihosting
// (include/zephyr/arch/common/semihost.h). Built against a stand-in of Zephyr only; never run on
// the real one.
#include "ports/platform.h"

#include <zephyr/kernel.h>

extern "C" {
#include <zephyr/arch/common/semihost.h>
extern const uint8_t hil_build_id_start[], hil_build_id_end[];
}

#include "core/log.h"
#include "ports/zephyr/main.h"
#include "ports/zephyr/pool.h"
#include "runner.h"

namespace hil {

namespace {

HIL_POOL("method") uint8_t method_pool[HIL_METHOD_POOL_BYTES];
HIL_POOL("temp") uint8_t temp_pool[HIL_TEMP_POOL_BYTES];
HIL_POOL("files") uint8_t file_pool[HIL_FILE_POOL_BYTES];

constexpr size_t kMaxCommandLine = 1024;
constexpr size_t kMaxWords = 2 * (128 + 64) + 4;
constexpr size_t kBuildIdNoteHeader = 16;  // name size, description size, type, "GNU\0"
constexpr long kExitExtended = 0x20;       // older Zephyrs have no name for it
constexpr long kApplicationExit = 0x20026;

size_t distance(const uint8_t* from, const uint8_t* to) {
  return static_cast<size_t>(reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from));
}

bool command_line(char* out, size_t capacity) {
  long block[2] = {reinterpret_cast<long>(out), static_cast<long>(capacity)};
  return semihost_exec(SEMIHOST_GET_CMDLINE, block) == 0;
}

/// Splits at blanks, in place.
int split(char* line, const char** words, size_t capacity) {
  size_t count = 0;
  for (char* at = line; *at != '\0' && count < capacity;) {
    while (*at == ' ') *at++ = '\0';
    if (*at == '\0') break;
    words[count++] = at;
    while (*at != ' ' && *at != '\0') ++at;
  }
  return static_cast<int>(count);
}

int run_command_line() {
  static char line[kMaxCommandLine];
  static const char* words[kMaxWords];
  if (!command_line(line, sizeof(line))) {
    set_log_sink(platform::write_log);
    HIL_LOG(Error, "no command line, or one longer than %zu bytes", sizeof(line) - 1);
    return 1;
  }
  return run(split(line, words, kMaxWords), words);
}

/// semihost_read() gives the length of a read that was whole; anything else failed or fell short.
bool read_whole(long file, Span<uint8_t> out) {
  const auto length = static_cast<long>(out.size());
  return length == 0 || semihost_read(file, out.data(), length) == length;
}

}  // namespace

namespace platform {

Pools pools() {
  return {{method_pool, sizeof(method_pool)},
          {temp_pool, sizeof(temp_pool)},
          {file_pool, sizeof(file_pool)}};
}

void write_log(const char* text, size_t length) {
  static long console = -1;
  if (console < 0) console = semihost_open(":tt", SEMIHOST_OPEN_W);
  semihost_write(console, text, static_cast<long>(length));
}

Error read_file(const char* path, Arena& pool, Span<uint8_t>* out, uint64_t* size) {
  const long file = semihost_open(path, SEMIHOST_OPEN_RB);
  if (file < 0) return Error::NotFound;
  const long length = semihost_flen(file);
  Error error = length < 0 ? Error::AccessFailed : Error::Ok;
  if (error == Error::Ok) {
    *size = static_cast<uint64_t>(length);
    void* memory = pool.allocate(*size, 32);
    *out = Span<uint8_t>(static_cast<uint8_t*>(memory), static_cast<size_t>(length));
    if (memory == nullptr) {
      error = Error::MemoryAllocationFailed;
    } else if (!read_whole(file, *out)) {
      error = Error::AccessFailed;
    }
  }
  semihost_close(file);
  return error;
}

bool write_file(const char* path, Span<const uint8_t> bytes) {
  const long file = semihost_open(path, SEMIHOST_OPEN_WB);
  if (file < 0) return false;
  const bool written = bytes.size() == 0 ||
                       semihost_write(file, bytes.data(), static_cast<long>(bytes.size())) == 0;
  return semihost_close(file) == 0 && written;
}

Clock clock() {
#ifdef CONFIG_TIMER_HAS_64BIT_CYCLE_COUNTER
  return [] { return k_cycle_get_64(); };
#else
  return nullptr;
#endif
}

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

static void exit_simulation(int status) {
  long block[2] = {kApplicationExit, status};
  semihost_exec(static_cast<semihost_instr>(kExitExtended), block);
}

}  // namespace hil

void hil_runner_main(void) { hil::exit_simulation(hil::run_command_line()); }
