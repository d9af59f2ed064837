// Every fault ends here: its registers in the form Arm's Corstone-300 platform code prints
// (ethos-u-core-platform, targets/corstone-300), then a non-zero exit. It asks nothing of the C
// library, whose state may be what the fault has destroyed, and has a stack of its own.
#include <cstdint>

namespace {

struct Frame {  // what the core pushes on exception entry
  uint32_t r0, r1, r2, r3, r12, lr, pc, xpsr;
};

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
  void write() { semihosting(kWrite0, text_); }

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
  const uint32_t status[2] = {kApplicationExit, 1};
  semihosting(kExitExtended, status);
  for (;;) {
  }
}

__attribute__((naked, used)) void Fault_Handler() {
  __asm__ volatile(
      ".syntax unified            \n"
      "mov r0, sp                 \n"  // frame
      "mrs r1, ipsr               \n"
      "movs r2, #0                \n"
      "msr msplim, r2             \n"
      "ldr r2, =hil_fault_stack + 1024 \n"
      "mov sp, r2                 \n"
      "b hil_report_fault         \n");
}

}  // extern "C"
