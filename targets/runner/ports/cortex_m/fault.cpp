// Every fault ends here: its registers in the form Arm's Corstone-300 platform code prints
// (ethos-u-core-platform, targets/corstone-300), then a non-zero exit.
#include <cstdarg>
#include <cstdint>

#include "core/format.h"
#include "host_link.h"
#include "ports/platform.h"
#include "uart.h"

namespace {

/// What the core pushes on exception entry.
struct Frame {
  uint32_t r0, r1, r2, r3, r12, lr, pc, xpsr;
};

// Armv7-M and Armv8-M Architecture Reference Manuals, system control block.
uint32_t fault_register(uint32_t address) { return *reinterpret_cast<volatile uint32_t*>(address); }
constexpr uint32_t kCfsr = 0xE000ED28;
constexpr uint32_t kMmfar = 0xE000ED34;
constexpr uint32_t kBfar = 0xE000ED38;
constexpr uint32_t kStackOverflow = 1u << 20;  // CFSR.STKOF

constexpr uint16_t kSemihostingCall = 0xBEAB;  // BKPT 0xAB

__attribute__((format(printf, 1, 2))) void print(const char* text, ...) {
  char line[200];
  va_list arguments;
  va_start(arguments, text);
  const size_t length = hil::format(line, sizeof(line), text, arguments);
  va_end(arguments);
  hil::platform::write_log(line, length);
}

}  // namespace

extern "C" {

extern uint16_t __text_start[], __text_end[];

/// EXC_RETURN bit 2 tells the stack that was in use.
__attribute__((naked, used)) void Fault_Handler() {
  __asm__ volatile(
      ".syntax unified   \n"
      "mrs r0, msp       \n"
      "mov r1, lr        \n"
      "lsrs r1, r1, #3   \n"
      "bcc 1f            \n"
      "mrs r0, psp       \n"
      "1: mrs r1, ipsr   \n"
      "ldr r2, =hil_fault \n"
      "bx r2             \n");
}

[[noreturn]] __attribute__((used)) void hil_fault(const Frame* frame, uint32_t exception) {
#if defined(__ARM_ARCH_6M__)
  const uint32_t cfsr = 0;  // there is none
#else
  const uint32_t cfsr = fault_register(kCfsr);
#endif
  const bool overflow = (cfsr & kStackOverflow) != 0;  // then nothing was pushed
  const Frame seen = overflow ? Frame{} : *frame;
  if (seen.pc >= reinterpret_cast<uintptr_t>(__text_start) &&
      seen.pc < reinterpret_cast<uintptr_t>(__text_end) &&
      *reinterpret_cast<const uint16_t*>(seen.pc) == kSemihostingCall) {
    constexpr char kMessage[] =
        "F [executorch:fault.cpp] no semihosting: start the simulator with it enabled\r\n\x04";
    hil::uart_start();
    hil::uart_write(kMessage, sizeof(kMessage) - 1);
    __builtin_trap();  // locks the core up: nothing else can end the run
  }
  print("Hard fault. irq=%d, pc=0x%08x, lr=0x%08x, xpsr=0x%08x, sp=0x%08x\n",
        static_cast<int>(exception) - 16, static_cast<unsigned>(seen.pc),
        static_cast<unsigned>(seen.lr), static_cast<unsigned>(seen.xpsr),
        static_cast<unsigned>(reinterpret_cast<uintptr_t>(frame)));
  print("    cfsr=0x%08x bfar=0x%08x mmfar=0x%08x\n", static_cast<unsigned>(cfsr),
        static_cast<unsigned>(fault_register(kBfar)),
        static_cast<unsigned>(fault_register(kMmfar)));
  if (overflow) {
    print("F [executorch:fault.cpp] stack overflow: build with a larger HIL_STACK_BYTES\n");
  }
  hil::end_run(1);
}

}  // extern "C"
