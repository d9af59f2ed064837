#include "console.h"

#include <cstddef>
#include <cstdint>
#if !defined(HIL_SEMIHOSTING)
#include <sys/stat.h>

#include <cerrno>
#endif

namespace hil {

#if defined(HIL_SEMIHOSTING)
namespace {

// Arm "Semihosting for AArch32 and AArch64"
constexpr uint32_t kWrite0 = 0x04;
constexpr uint32_t kExitExtended = 0x20;
constexpr uint32_t kApplicationExit = 0x20026;  // ADP_Stopped_ApplicationExit

uint32_t semihosting(uint32_t operation, const void* argument) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

}  // namespace

void console_write(const char* text) { semihosting(kWrite0, text); }

void console_exit(int status) {
  const uint32_t block[2] = {kApplicationExit, static_cast<uint32_t>(status)};
  semihosting(kExitExtended, block);
  for (;;) {
  }
}

#else
namespace {

// CMSDK APB UART ("Arm Cortex-M System Design Kit Technical Reference Manual"). UART0 of
// Corstone-300's board, Secure (Arm AN547); on QEMU it stands in for Corstone-320's too.
struct Uart {
  volatile uint32_t data;
  volatile uint32_t state;    // bit 0: transmit buffer full
  volatile uint32_t control;  // bit 0: transmit enable
  volatile uint32_t interrupt;
  volatile uint32_t divider;
};
constexpr uintptr_t kUart0 = 0x59303000;
constexpr uint32_t kSmallestDivider = 16;
constexpr char kEndOfTransmission = '\x04';

void put(char character) {
  Uart& uart = *reinterpret_cast<Uart*>(kUart0);
  if ((uart.control & 1) == 0) {
    uart.divider = kSmallestDivider;
    uart.control = 1;
  }
  while ((uart.state & 1) != 0) {
  }
  uart.data = static_cast<uint8_t>(character);
}

}  // namespace

void console_write(const char* text) {
  while (*text != '\0') put(*text++);
}

void console_exit(int status) {
  if (status != 0) {  // the words of Arm's platform code
    console_write("Application exit code: ");
    console_write(status < 0 ? "-" : "");
    char digits[12];
    size_t count = 0;
    const auto number = static_cast<uint32_t>(status);
    for (uint32_t rest = status < 0 ? 0u - number : number; rest != 0; rest /= 10) {
      digits[count++] = static_cast<char>('0' + rest % 10);
    }
    while (count != 0) put(digits[--count]);
    console_write(".\n");
  }
  put(kEndOfTransmission);
  for (;;) {
  }
}
#endif

}  // namespace hil

#if !defined(HIL_SEMIHOSTING)
// What newlib's libnosys leaves undone.
extern "C" {

int _write(int file, const char* text, int length) {
  if (file != 1 && file != 2) {
    errno = EBADF;
    return -1;
  }
  for (int i = 0; i < length; ++i) hil::put(text[i]);
  return length;
}

// The standard streams are a terminal: newlib then writes each line at once, and not all at exit.
int _isatty(int file) { return file <= 2 ? 1 : 0; }

int _fstat(int, struct stat* state) {
  *state = {};
  state->st_mode = S_IFCHR;
  return 0;
}

[[noreturn]] void _exit(int status) { hil::console_exit(status); }

}  // extern "C"
#endif
