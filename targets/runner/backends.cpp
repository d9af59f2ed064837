// The backends of this build; none yet.
#include "core/backend.h"

namespace hil {

Span<const BackendEntry> backend_table() { return {}; }

}  // namespace hil
