// What ExecuTorch's executor_runner does not do: tell of a fatal signal, with the registers, before
// it ends the program. Like the bundled runner's, so that one reader serves both.
#include <unistd.h>

#include "ports/linux/signals.h"
#include "ports/platform.h"

namespace hil::platform {

void write_log(const char* text, size_t length) {
  while (length > 0) {
    const ssize_t done = ::write(STDERR_FILENO, text, length);
    if (done <= 0) return;
    text += done;
    length -= static_cast<size_t>(done);
  }
}

}  // namespace hil::platform

namespace {

__attribute__((constructor)) void begin() { hil::tell_of_signals(); }

}  // namespace
