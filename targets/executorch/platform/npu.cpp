// The Ethos-U driver's initialisation, before main as Arm's platform code does it. Base addresses:
// Arm ML embedded evaluation kit (Corstone-300 0x58102000, Corstone-320 0x50004000, Secure); on
// QEMU nothing is there, for the driver's functions are done outside.
#if defined(HIL_NPU)
#include <cstdint>

extern "C" {
#include <ethosu_driver.h>
}

namespace {

#if defined(ETHOSU85)
constexpr uintptr_t kBase = 0x50004000;
#else
constexpr uintptr_t kBase = 0x58102000;
#endif

ethosu_driver npu;

__attribute__((constructor)) void initialise() {
  (void)ethosu_init(&npu, reinterpret_cast<void*>(kBase), nullptr, 0, 1, 1);
}

}  // namespace
#endif
