// Which of a kernel's loops this build calls, as isa::: those of <kernel>_helium.h (namespace
// helium) where the core has Helium, else those of <kernel>_scalar.h (namespace scalar).
#pragma once

namespace hil {

namespace helium {}
namespace scalar {}

#if defined(__ARM_FEATURE_MVE)
namespace isa = helium;
#else
namespace isa = scalar;
#endif

}  // namespace hil
