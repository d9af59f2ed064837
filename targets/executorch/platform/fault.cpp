// Every fault ends here: its registers in the form Arm's Corstone-300 platform code prints
// (ethos-u-core-platform, targets/corstone-300), then a non-zero exit. It asks nothing of the C
// library, whose state may be what the fault has destroyed, and has a stack of its own.
#include <cstdint>

#include "console.h"

namespace {

struct Frame {  // what the core pushes on exception entry
  uint32_t r0, r1, r2, r3, r12, lr, pc, xpsr;
};

/// A line that grows and is never longer than it may be.
class Line {
 public:
  Line& text(const char* more) {
    while (*more != '\0') put(*more++);
    return *this;
  }
  Line& hex(uint32_t value) {
    text("0x");
    for (int shift = 28; shift >= 0; shift -= 4) put("0123456789abcdef"[(value >> shift) & 0xF]);
    return *this;
  }
  Line& number(int value) {
    if (value < 0) put('-');
    const unsigned size = static_cast<unsigned>(value < 0 ? -value : value);
    if (size >= 100) put(static_cast<char>('0' + size / 100 % 10));
    if (size >= 10) put(static_cast<char>('0' + size / 10 % 10));
    put(static_cast<char>('0' + size % 10));
    return *this;
  }
  void write() const { hil::console_write(text_); }

 private:
  void put(char one) {
    if (length_ < sizeof(text_) - 1) text_[length_++] = one;
    text_[length_] = '\0';
  }
  char text_[200] = {};
  unsigned length_ = 0;
};

uint32_t fault_register(uint32_t address) { return *reinterpret_cast<volatile uint32_t*>(address); }
constexpr uint32_t kCfsr = 0xE000ED28;
constexpr uint32_t kMmfar = 0xE000ED34;
constexpr uint32_t kBfar = 0xE000ED38;

}  // namespace

extern "C" {

alignas(8) uint8_t hil_fault_stack[1024];

[[noreturn]] __attribute__((used)) void hil_report_fault(const Frame* frame, uint32_t ipsr) {
  Line line;
  line.text("Hard fault. irq=").number(static_cast<int>(ipsr & 0x1FF) - 16);
  line.text(", pc=").hex(frame->pc).text(", lr=").hex(frame->lr).text(", xpsr=").hex(frame->xpsr);
  line.text(", sp=").hex(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(frame)));
  line.text("\n            cfsr=").hex(fault_register(kCfsr));
  line.text(" bfar=").hex(fault_register(kBfar)).text(" mmfar=").hex(fault_register(kMmfar));
  line.text("\n").write();
  hil::console_exit(1);
}

__attribute__((naked, used)) void Fault_Handler() {
  __asm__ volatile(
      ".syntax unified            \n"
      "mov r0, sp                 \n"  // frame
      "mrs r1, ipsr               \n"
#if __ARM_ARCH >= 8 && !defined(__ARM_ARCH_8M_BASE__)
      "movs r2, #0                \n"
      "msr msplim, r2             \n"
#endif
      "ldr r2, =hil_fault_stack + 1024 \n"
      "mov sp, r2                 \n"
      "bl hil_report_fault        \n");
}

}  // extern "C"
