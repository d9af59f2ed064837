// The backends of this build.
#include "core/backend.h"
#if HIL_ETHOSU
#include "ethosu/backend.h"
#endif

namespace hil {

#if HIL_ETHOSU
Span<const BackendEntry> backend_table() {
  static BackendEntry entry = {"EthosUBackend", nullptr};
  entry.backend = &ethosu::backend();
  return {&entry, 1};
}
#else
Span<const BackendEntry> backend_table() { return {}; }
#endif

}  // namespace hil
