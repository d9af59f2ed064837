// Where the platform's own texts go, and how it ends. A runner built with SEMIHOSTING asks the
// debugger; any other has the board's UART, as with Arm's platform code, and ends by ASCII EOT, at
// which models stop that were started with shutdown_on_eot.
#pragma once

namespace hil {

/// Takes nothing from the C library, whose state may be what a fault has destroyed.
void console_write(const char* text);

/// Ends the program. Only under semihosting does the host get the status.
[[noreturn]] void console_exit(int status);

}  // namespace hil
