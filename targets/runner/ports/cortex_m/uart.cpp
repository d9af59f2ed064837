// CMSDK APB UART ("Arm Cortex-M System Design Kit Technical Reference Manual").
#include "uart.h"

#include <cstdint>

namespace hil {

namespace {

struct Registers {
  volatile uint32_t data;
  volatile uint32_t state;    // bit 0: transmit buffer full
  volatile uint32_t control;  // bit 0: transmit enable
  volatile uint32_t interrupt;
  volatile uint32_t baud_divider;
};

}  // namespace

void uart_write(const char* text) {
  auto& uart = *reinterpret_cast<Registers*>(HIL_UART_BASE);
  uart.baud_divider = 16;
  uart.control = 1;
  for (; *text != '\0'; ++text) {
    while ((uart.state & 1) != 0) {
    }
    uart.data = static_cast<uint8_t>(*text);
  }
}

}  // namespace hil
