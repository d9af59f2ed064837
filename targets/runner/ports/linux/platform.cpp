// The runner as a process of a board's Linux.
#include "ports/platform.h"

#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "ports/linux/signals.h"
#include "runner.h"

namespace hil::platform {

namespace {

uint64_t first_number(const char* text) {
  uint64_t value = 0;
  while (*text == ' ' || *text == '\t') ++text;
  for (; *text >= '0' && *text <= '9'; ++text)
    value = value * 10 + static_cast<uint64_t>(*text - '0');
  return value;
}

/// The value of a line "KEY:  1760 kB" in a file of proc(5), in bytes; 0 when there is none.
uint64_t bytes_of(const char* path, const char* key) {
  char text[4096];
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = ::read(file, text, sizeof(text) - 1);
  ::close(file);
  if (got <= 0) return 0;
  text[got] = '\0';
  const char* line = std::strstr(text, key);
  return line == nullptr ? 0 : first_number(line + std::strlen(key)) * 1024;
}

}  // namespace

/// Under QEMU in user mode it would be the emulator's, which is nobody's figure. Otherwise VmHWM
/// is behind by up to 64 pages of each kind, which a task counts by itself (Linux
/// mm/memory.c, TASK_RSS_EVENTS_THRESH); Rss is counted anew, and nothing was freed since.
uint64_t peak_resident() {
  if (std::getenv("HIL_EMULATED") != nullptr) return 0;
  const uint64_t counted = bytes_of("/proc/self/status", "VmHWM:");
  const uint64_t now = bytes_of("/proc/self/smaps_rollup", "Rss:");
  return counted > now ? counted : now;
}

}  // namespace hil::platform

int main(int argc, char** argv) {
  hil::tell_of_signals();
  return hil::run(argc, argv);
}
