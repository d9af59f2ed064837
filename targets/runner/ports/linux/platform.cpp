// The runner as a process of a board's Linux.
#include "ports/platform.h"

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

}  // namespace

/// proc(5), /proc/PID/status: "VmHWM:	    1760 kB".
uint64_t peak_resident() {
  char text[4096];
  const int file = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = ::read(file, text, sizeof(text) - 1);
  ::close(file);
  if (got <= 0) return 0;
  text[got] = '\0';
  const char* line = std::strstr(text, "VmHWM:");
  return line == nullptr ? 0 : first_number(line + std::strlen("VmHWM:")) * 1024;
}

}  // namespace hil::platform

int main(int argc, char** argv) {
  hil::tell_of_signals();
  return hil::run(argc, argv);
}
