// Registers: Armv7-M and Armv8-M Architecture Reference Manuals, debug and DWT.
#include "cycle_counter.h"

namespace hil {

namespace {

volatile uint32_t& debug_control() { return *reinterpret_cast<volatile uint32_t*>(0xE000EDFC); }
volatile uint32_t& dwt_control() { return *reinterpret_cast<volatile uint32_t*>(0xE0001000); }
volatile uint32_t& cycles() { return *reinterpret_cast<volatile uint32_t*>(0xE0001004); }

constexpr uint32_t kTraceEnable = 1u << 24;
constexpr uint32_t kCounterEnable = 1u << 0;
// Armv6-M (its manual, DWT) and Armv8-M Baseline have no DWT_CYCCNT.
#if defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__)
constexpr bool kHasCounter = false;
#else
constexpr bool kHasCounter = true;
#endif

}  // namespace

bool start_cycle_counter() {
  if (!kHasCounter) return false;
  debug_control() = debug_control() | kTraceEnable;
  dwt_control() = dwt_control() | kCounterEnable;
  const uint32_t before = cycles();
  for (int i = 0; i < 8; ++i) __asm__ volatile("nop");
  return cycles() != before;
}

uint64_t read_cycle_counter() {
  static uint32_t last = 0;
  static uint64_t wraps = 0;
  const uint32_t now = cycles();
  if (now < last) wraps += uint64_t{1} << 32;
  last = now;
  return wraps + now;
}

}  // namespace hil
