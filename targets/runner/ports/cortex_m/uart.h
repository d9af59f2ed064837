// The serial port of a board: its console where the host is at the other end of a serial line, a
// last resort for messages where semihosting is missing.
#pragma once

#include <cstddef>

namespace hil {

void uart_start();
void uart_write(const char* text, size_t length);

}  // namespace hil
