// What ports share whose command line, files and exit go through semihosting.
#pragma once

namespace hil {

/// Runs with the words of semihosting's command line; returns the exit status.
int run_command_line();

}  // namespace hil
