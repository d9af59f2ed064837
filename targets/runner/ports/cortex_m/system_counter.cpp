// Registers: "Arm Corstone SSE-300 Example Subsystem Technical Reference Manual", system counter
// control frame (Secure).
#include "system_counter.h"

namespace hil {

namespace {

struct Registers {
  volatile uint32_t control;     // CNTCR
  volatile uint32_t status;      // CNTSR
  volatile uint32_t count_low;   // CNTCV[31:0]
  volatile uint32_t count_high;  // CNTCV[63:32]
  volatile uint32_t scale;       // CNTSCR
};

constexpr uint32_t kEnable = 1u << 0;
constexpr uint32_t kScaleEnable = 1u << 2;
// Counts per input clock in 8.24 fixed point. The input clock of QEMU's mps3-an547 is 32 MHz and
// one instruction takes 32 ns under "-icount shift=5", so this scale counts instructions:
// 32 MHz * 16384000 / 2^24 = 1 / 32 ns.
constexpr uint32_t kOneCountPer32Ns = 16384000;

Registers& registers() { return *reinterpret_cast<Registers*>(HIL_SYSTEM_COUNTER_BASE); }

}  // namespace

void start_system_counter() {
  registers().control = 0;  // the scale may only change while the counter stands still
  registers().scale = kOneCountPer32Ns;
  registers().control = kEnable | kScaleEnable;
}

uint64_t read_system_counter() {
  for (;;) {
    const uint32_t high = registers().count_high;
    const uint32_t low = registers().count_low;
    if (registers().count_high == high) return uint64_t{high} << 32 | low;
  }
}

}  // namespace hil
