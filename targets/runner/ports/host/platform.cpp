// The runner as a native program of this machine.
#include "ports/platform.h"
#include "runner.h"

namespace hil::platform {

uint64_t peak_resident() { return 0; }

}  // namespace hil::platform

int main(int argc, char** argv) { return hil::run(argc, argv); }
