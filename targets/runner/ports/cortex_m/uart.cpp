#include "uart.h"

#include <cstdint>

namespace hil {

namespace {

#if HIL_UART_STM32 == 0
// CMSDK APB UART ("Arm Cortex-M System Design Kit Technical Reference Manual").
struct Registers {
  volatile uint32_t data;
  volatile uint32_t state;    // bit 0: transmit buffer full
  volatile uint32_t control;  // bit 0: transmit enable
  volatile uint32_t interrupt;
  volatile uint32_t divider;
};
void enable(Registers& uart) { uart.control = 1; }
bool is_full(const Registers& uart) { return (uart.state & 1) != 0; }
#elif HIL_UART_STM32 == 1
// USART of STM32F1, F2 and F4 ("RM0090", "RM0390").
struct Registers {
  volatile uint32_t state;  // bit 7: transmit data register empty
  volatile uint32_t data;
  volatile uint32_t divider;
  volatile uint32_t control;  // bit 13: USART enable, bit 3: transmitter enable
};
void enable(Registers& uart) { uart.control = 1u << 13 | 1u << 3; }
bool is_full(const Registers& uart) { return (uart.state & 1u << 7) == 0; }
#else
// USART of STM32F7, H5, H7, L4, L5, U5 and others ("RM0481").
struct Registers {
  volatile uint32_t control;  // bit 0: USART enable, bit 3: transmitter enable
  volatile uint32_t unused[2];
  volatile uint32_t divider;
  volatile uint32_t unused_too[3];
  volatile uint32_t state;  // bit 7: transmit data register empty
  volatile uint32_t unused_as_well[2];
  volatile uint32_t data;
};
void enable(Registers& uart) { uart.control = 1u << 3 | 1u << 0; }
bool is_full(const Registers& uart) { return (uart.state & 1u << 7) == 0; }
#endif

/// Clocks and pins of the board: bits to clear and to set, by address.
struct Setting {
  uint32_t address, clear, set;
};
constexpr Setting kSettings[] = {HIL_BOARD_SETTINGS{0, 0, 0}};

Registers& uart() { return *reinterpret_cast<Registers*>(HIL_UART_BASE); }

}  // namespace

void uart_start() {
  for (const Setting& setting : kSettings) {
    if (setting.address == 0) continue;
    auto& place = *reinterpret_cast<volatile uint32_t*>(setting.address);
    place = (place & ~setting.clear) | setting.set;
  }
  uart().divider = HIL_UART_DIVIDER;
  enable(uart());
}

void uart_write(const char* text, size_t length) {
  for (size_t i = 0; i < length; ++i) {
    while (is_full(uart())) {
    }
    uart().data = static_cast<uint8_t>(text[i]);
  }
}

}  // namespace hil
