// The executor runner: loads one program, runs its input sets, writes their outputs.
#pragma once

namespace hil {

/// The whole run; the exit status of the process.
int run(int argc, const char* const* argv);

}  // namespace hil
