// The runner on a bare Cortex-M board, its files and its exit through semihosting.
#include "ports/platform.h"

#include "core/log.h"
#include "runner.h"
#include "semihosting.h"
#ifdef HIL_SYSTEM_COUNTER_BASE
#include "system_counter.h"
#endif

extern "C" {
extern uint8_t __build_id_start[], __build_id_end[];
extern uint8_t __stack_limit[], __stack_top[];
[[noreturn]] void hil_main();
}

namespace hil {

size_t stack_high_water();

namespace {

// Not cleared at start-up (NOLOAD): the loader writes before anyone reads.
__attribute__((section(".pool.method"))) alignas(32) uint8_t method_pool[HIL_METHOD_POOL_BYTES];
__attribute__((section(".pool.temp"))) alignas(32) uint8_t temp_pool[HIL_TEMP_POOL_BYTES];
__attribute__((section(".pool.files"))) alignas(32) uint8_t file_pool[HIL_FILE_POOL_BYTES];

constexpr size_t kMaxCommandLine = 1024;
constexpr size_t kMaxWords = 2 * (128 + 64) + 4;
constexpr size_t kBuildIdNoteHeader = 16;  // name size, description size, type, "GNU\0"

size_t distance(const uint8_t* from, const uint8_t* to) {
  return static_cast<size_t>(reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from));
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
  if (!semihosting::command_line(line, sizeof(line))) {
    set_log_sink(platform::write_log);
    HIL_LOG(Error, "no command line, or one longer than %zu bytes", sizeof(line) - 1);
    return 1;
  }
  return run(split(line, words, kMaxWords), words);
}

}  // namespace

namespace platform {

Pools pools() {
  return {{method_pool, sizeof(method_pool)},
          {temp_pool, sizeof(temp_pool)},
          {file_pool, sizeof(file_pool)}};
}

void write_log(const char* text, size_t length) {
  static int console = -1;
  if (console < 0) console = semihosting::open(":tt", semihosting::Mode::Write);
  semihosting::write(console, reinterpret_cast<const uint8_t*>(text), length);
}

Error read_file(const char* path, Arena& pool, Span<uint8_t>* out, uint64_t* size) {
  const int file = semihosting::open(path, semihosting::Mode::ReadBinary);
  if (file < 0) return Error::NotFound;
  const int length = semihosting::length(file);
  Error error = length < 0 ? Error::AccessFailed : Error::Ok;
  if (error == Error::Ok) {
    *size = static_cast<uint64_t>(length);
    void* memory = pool.allocate(*size, 32);
    *out = Span<uint8_t>(static_cast<uint8_t*>(memory), static_cast<size_t>(length));
    if (memory == nullptr) {
      error = Error::MemoryAllocationFailed;
    } else if (!semihosting::read(file, out->data(), out->size())) {
      error = Error::AccessFailed;
    }
  }
  semihosting::close(file);
  return error;
}

bool write_file(const char* path, Span<const uint8_t> bytes) {
  const int file = semihosting::open(path, semihosting::Mode::WriteBinary);
  if (file < 0) return false;
  const bool written = semihosting::write(file, bytes.data(), bytes.size());
  return semihosting::close(file) && written;
}

Clock clock() {
#ifdef HIL_SYSTEM_COUNTER_BASE
  return read_system_counter;
#else
  return nullptr;
#endif
}

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
  hil::semihosting::exit(hil::run_command_line());
}
