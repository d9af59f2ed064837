// Reset to newlib's crt0 on the Cortex-M55 of QEMU's mps3-an547, for a program compiled for it or
// for an older core (v6-M, v7E-M, which have no stack limit) and linked with ExecuTorch's Corstone
// linker scripts: they give the tables of what to copy and to clear, and the symbols of the stack.
// crt0 does the rest: .bss, semihosting, arguments, constructors, main, exit.
#include <cstdint>

extern "C" {

struct Copy {
  const uint32_t* from;
  uint32_t* to;
  uint32_t words;
};
struct Clear {
  uint32_t* at;
  uint32_t words;
};

extern uint32_t __StackTop[], __StackLimit[];
extern const Copy __copy_table_start__[], __copy_table_end__[];
extern const Clear __zero_table_start__[], __zero_table_end__[];

void Reset_Handler();
void Fault_Handler();
[[noreturn]] void _start();

// Armv8-M Architecture Reference Manual, exception numbers. The driver's interrupt never comes
// here: its functions are done outside.
__attribute__((section(".vectors"), used)) const uintptr_t hil_vectors[16] = {
    reinterpret_cast<uintptr_t>(__StackTop),
    reinterpret_cast<uintptr_t>(Reset_Handler),
    reinterpret_cast<uintptr_t>(Fault_Handler),  // NMI
    reinterpret_cast<uintptr_t>(Fault_Handler),  // HardFault
    reinterpret_cast<uintptr_t>(Fault_Handler),  // MemManage
    reinterpret_cast<uintptr_t>(Fault_Handler),  // BusFault
    reinterpret_cast<uintptr_t>(Fault_Handler),  // UsageFault
    reinterpret_cast<uintptr_t>(Fault_Handler),  // SecureFault
    0,
    0,
    0,
    reinterpret_cast<uintptr_t>(Fault_Handler),  // SVCall
    reinterpret_cast<uintptr_t>(Fault_Handler),  // DebugMonitor
    0,
    reinterpret_cast<uintptr_t>(Fault_Handler),  // PendSV
    reinterpret_cast<uintptr_t>(Fault_Handler),  // SysTick
};

/// CPACR first: the compiler may use vector registers anywhere. The stack's limit is set, so that
/// an overflow is a fault and not somebody else's data.
__attribute__((naked, used)) void Reset_Handler() {
  __asm__ volatile(
      ".syntax unified            \n"
#if defined(__ARM_FP)
      "ldr r0, =0xE000ED88        \n"  // CPACR: full access to CP10 and CP11 (FPU, MVE)
      "ldr r1, [r0]               \n"
      "orr r1, r1, #(0xF << 20)   \n"
      "str r1, [r0]               \n"
      "dsb                        \n"
      "isb                        \n"
#endif
#if __ARM_ARCH >= 8 && !defined(__ARM_ARCH_8M_BASE__)
      "ldr r0, =__StackLimit      \n"
      "msr msplim, r0             \n"
#endif
      "bl hil_start               \n");  // v6-M has no branch that reaches as far
}

/// One count per instruction: under "-icount shift=5" one takes 32 ns, and the scale, in 8.24 fixed
/// point, makes that of the board's 32 MHz. Whoever wants to know reads it through the debugger.
/// (Arm Corstone SSE-300 Technical Reference Manual, system counter control frame, Secure.)
void start_system_counter() {
  auto* const frame = reinterpret_cast<volatile uint32_t*>(0x58100000);
  frame[0] = 0;         // CNTCR: the scale may only change while the counter stands still
  frame[4] = 16384000;  // CNTSCR: 32 MHz * 16384000 / 2^24 = 1 / 32 ns
  frame[0] = 1u << 0 | 1u << 2;
}

[[noreturn]] __attribute__((used)) void hil_start() {
  auto& vtor = *reinterpret_cast<volatile uintptr_t*>(0xE000ED08);
  vtor = reinterpret_cast<uintptr_t>(hil_vectors);
  auto& ccr = *reinterpret_cast<volatile uint32_t*>(0xE000ED14);
  ccr = ccr | 1u << 19 | 1u << 18;  // low-overhead branches, branch prediction
  __asm__ volatile("dsb\nisb" ::: "memory");
  start_system_counter();
  for (const Copy* one = __copy_table_start__; one < __copy_table_end__; ++one) {
    for (uint32_t i = 0; i < one->words; ++i) one->to[i] = one->from[i];
  }
  for (const Clear* one = __zero_table_start__; one < __zero_table_end__; ++one) {
    for (uint32_t i = 0; i < one->words; ++i) one->at[i] = 0;
  }
  _start();
}

}  // extern "C"
