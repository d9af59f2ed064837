#include "ports/semihosted.h"

#include "core/log.h"
#include "ports/platform.h"
#include "ports/semihosting.h"
#include "ports/words.h"

namespace hil {

namespace {

constexpr size_t kMaxCommandLine = 1024;

}  // namespace

int run_command_line() {
  static char line[kMaxCommandLine];
  if (!semihosting::command_line(line, sizeof(line))) {
    set_log_sink(platform::write_log);
    HIL_LOG(Error, "no command line, or one longer than %zu bytes", sizeof(line) - 1);
    return 1;
  }
  return run_words(line);
}

namespace platform {

void write_log(const char* text, size_t length) {
  static int console = -1;
  if (console < 0) console = semihosting::open(":tt", semihosting::Mode::Write);
  semihosting::write(console, reinterpret_cast<const uint8_t*>(text), length);
}

Error read_file(const char* path, Arena& pool, Span<const uint8_t>* out, uint64_t* size) {
  const int file = semihosting::open(path, semihosting::Mode::ReadBinary);
  if (file < 0) return Error::NotFound;
  const int length = semihosting::length(file);
  Error error = length < 0 ? Error::AccessFailed : Error::Ok;
  if (error == Error::Ok) {
    *size = static_cast<uint64_t>(length);
    auto* memory = static_cast<uint8_t*>(pool.allocate(*size, 32));
    *out = Span<const uint8_t>(memory, static_cast<size_t>(length));
    if (memory == nullptr) {
      error = Error::MemoryAllocationFailed;
    } else if (!semihosting::read(file, memory, out->size())) {
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

}  // namespace platform

}  // namespace hil
