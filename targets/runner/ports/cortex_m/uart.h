// A last resort for messages when there is no semihosting.
#pragma once

namespace hil {

void uart_write(const char* text);

}  // namespace hil
