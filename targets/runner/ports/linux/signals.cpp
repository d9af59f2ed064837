#include "ports/linux/signals.h"

#include <csignal>
#include <cstdint>

#include <ucontext.h>

#include "core/format.h"
#include "ports/platform.h"

namespace hil {

namespace {

struct Fatal {
  int number;
  const char* name;
};
constexpr Fatal kFatal[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGILL, "SIGILL"},
    {SIGFPE, "SIGFPE"},   {SIGABRT, "SIGABRT"}, {SIGTRAP, "SIGTRAP"},
};

// A signal for an overflown stack needs another one.
alignas(16) uint8_t handler_stack[16384];

const char* name_of(int number) {
  for (const Fatal& one : kFatal) {
    if (one.number == number) return one.name;
  }
  return "?";
}

struct Registers {
  uint64_t pc = 0, lr = 0, sp = 0;
};

Registers registers_of(const void* context) {
#if defined(__aarch64__)
  const mcontext_t& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
  return {machine.pc, machine.regs[30], machine.sp};
#else
  (void)context;
  return {};
#endif
}

void tell(int number, siginfo_t* info, void* context) {
  const Registers seen = registers_of(context);
  char line[200];
  const size_t length = format_to(
      line, sizeof(line), "Fatal signal %d (%s). pc=0x%llx, lr=0x%llx, sp=0x%llx, far=0x%llx\n",
      number, name_of(number), static_cast<unsigned long long>(seen.pc),
      static_cast<unsigned long long>(seen.lr), static_cast<unsigned long long>(seen.sp),
      static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(info->si_addr)));
  platform::write_log(line, length);
  ::raise(number);  // SA_RESETHAND: this time it ends the program
}

}  // namespace

void tell_of_signals() {
  stack_t stack = {};
  stack.ss_sp = handler_stack;
  stack.ss_size = sizeof(handler_stack);
  ::sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = tell;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  for (const Fatal& one : kFatal) ::sigaction(one.number, &action, nullptr);
}

}  // namespace hil
