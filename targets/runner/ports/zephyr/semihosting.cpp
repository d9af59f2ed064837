// Through Zephyr's semihosting (include/zephyr/arch/common/semihost.h).
#include "ports/semihosting.h"

#include <zephyr/kernel.h>
#include <cstring>
#if defined(CONFIG_HIL_LOG_ON_CONSOLE)
#include <zephyr/sys/printk.h>
#endif

extern "C" {
#include <zephyr/arch/common/semihost.h>
}

namespace hil::semihosting {

namespace {

constexpr long kExitExtended = 0x20;  // older Zephyrs have no name for it
constexpr long kApplicationExit = 0x20026;
constexpr int kConsole = 0x7fffffff;  // no handle of semihosting's

/// False where the log goes to semihosting's console. Without bytes it is only asked.
bool log_on_console(const uint8_t* bytes, size_t count) {
#if defined(CONFIG_HIL_LOG_ON_CONSOLE)
  if (bytes != nullptr) {
    printk("%.*s", static_cast<int>(count), reinterpret_cast<const char*>(bytes));
  }
  return true;
#else
  (void)bytes;
  (void)count;
  return false;
#endif
}

}  // namespace

int open(const char* path, Mode mode) {
  if (std::strcmp(path, ":tt") == 0 && log_on_console(nullptr, 0)) return kConsole;
  return static_cast<int>(semihost_open(path, static_cast<long>(mode)));
}

bool close(int file) { return semihost_close(file) == 0; }

int length(int file) { return static_cast<int>(semihost_flen(file)); }

/// semihost_read() gives the length of a read that was whole; anything else failed or fell short.
bool read(int file, uint8_t* out, size_t count) {
  return count == 0 ||
         semihost_read(file, out, static_cast<long>(count)) == static_cast<long>(count);
}

bool write(int file, const uint8_t* bytes, size_t count) {
  if (file == kConsole) return log_on_console(bytes, count);
  return count == 0 || semihost_write(file, bytes, static_cast<long>(count)) == 0;
}

bool command_line(char* out, size_t capacity) {
  long block[2] = {reinterpret_cast<long>(out), static_cast<long>(capacity)};
  return semihost_exec(SEMIHOST_GET_CMDLINE, block) == 0;
}

void exit(int status) {
  long block[2] = {kApplicationExit, status};
  for (;;) semihost_exec(static_cast<semihost_instr>(kExitExtended), block);
}

}  // namespace hil::semihosting
