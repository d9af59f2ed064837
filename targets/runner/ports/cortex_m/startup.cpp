// Reset to main for any Cortex-M (in Secure state where there is one), without newlib's crt0:
// QEMU's answer to SYS_HEAPINFO would put its stack into the ITCM.
//
// Thread mode runs on PSP, from Armv8-M on with PSPLIM at the end of the stack, exceptions on a
// small MSP stack of their own, so that a stack overflow still finds a stack to be reported from.
#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" {

extern uint32_t __data_start[], __data_end[], __data_load[];
extern uint32_t __bss_start[], __bss_end[];
extern uint32_t __stack_limit[], __stack_top[];
extern uint32_t __handler_stack_top[];
using Initializer = void (*)();
extern Initializer __init_array_start[], __init_array_end[];

void Reset_Handler();
void Fault_Handler();
[[noreturn]] void hil_main();

// Armv8-M Architecture Reference Manual, exception numbers.
__attribute__((section(".vectors"), used)) const uintptr_t hil_vectors[16] = {
    reinterpret_cast<uintptr_t>(__handler_stack_top),
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

/// CPACR first: the compiler may use vector registers anywhere. Then the two stacks.
__attribute__((naked, used)) void Reset_Handler() {
  __asm__ volatile(
      ".syntax unified            \n"
#if defined(__ARM_FP)
      "ldr r0, =0xE000ED88        \n"  // CPACR: full access to CP10 and CP11 (FPU, MVE)
      "ldr r1, [r0]               \n"
      "orr r1, r1, #(0xF << 20)   \n"
      "str r1, [r0]               \n"
#endif
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
      "ldr r0, =__handler_stack_limit \n"
      "msr msplim, r0             \n"
      "ldr r0, =__stack_limit     \n"
      "msr psplim, r0             \n"
#endif
      "ldr r0, =__stack_top       \n"
      "msr psp, r0                \n"
      "movs r0, #2                \n"  // CONTROL.SPSEL
      "msr control, r0            \n"
      "dsb                        \n"
      "isb                        \n"
      "b hil_start                \n");
}

constexpr uint32_t kStackPaint = 0xA5A5A5A5;

[[noreturn]] __attribute__((used)) void hil_start() {
  auto& vtor = *reinterpret_cast<volatile uintptr_t*>(0xE000ED08);
  vtor = reinterpret_cast<uintptr_t>(hil_vectors);
#if defined(__ARM_ARCH_8_1M_MAIN__)
  auto& ccr = *reinterpret_cast<volatile uint32_t*>(0xE000ED14);
  ccr = ccr | 1u << 19 | 1u << 18;  // low-overhead branches, branch prediction
#endif
#if !defined(__ARM_ARCH_6M__)
  // Memory, bus and usage faults; bit 19, SecureFault, is reserved before Armv8-M.
  auto& shcsr = *reinterpret_cast<volatile uint32_t*>(0xE000ED24);
  shcsr = shcsr | 1u << 16 | 1u << 17 | 1u << 18 | 1u << 19;
#endif
  __asm__ volatile("dsb\nisb" ::: "memory");

  const auto* here = static_cast<const uint32_t*>(__builtin_frame_address(0)) - 16;
  for (uint32_t* at = __stack_limit; at < here; ++at) *at = kStackPaint;
  std::memcpy(__data_start, __data_load,
              static_cast<size_t>(reinterpret_cast<uintptr_t>(__data_end) -
                                  reinterpret_cast<uintptr_t>(__data_start)));
  std::memset(__bss_start, 0,
              static_cast<size_t>(reinterpret_cast<uintptr_t>(__bss_end) -
                                  reinterpret_cast<uintptr_t>(__bss_start)));
  for (Initializer* each = __init_array_start; each < __init_array_end; ++each) (*each)();
  hil_main();
}

/// What is never called; keeps the C++ library's demangling terminate handler out.
void __cxa_pure_virtual() { __builtin_trap(); }
void abort() { __builtin_trap(); }

}  // extern "C"

namespace hil {

size_t stack_high_water() {
  const uint32_t* at = __stack_limit;
  while (at < __stack_top && *at == kStackPaint) ++at;
  return static_cast<size_t>(reinterpret_cast<uintptr_t>(__stack_top) -
                             reinterpret_cast<uintptr_t>(at));
}

}  // namespace hil
