// A copy of each input in temporary memory, at its offset, before the driver is given it.
#include "stage.h"

#include <algorithm>

#include "../../../runtime/executor/memory_manager.h"
#include "ethosu/io_memcpy.h"

namespace hil::ethosu {

bool stage_inputs(const VelaStream& stream, Span<Value* const> args) {
  size_t end = 0;
  for (size_t i = 0; i < stream.inputs.size(); ++i) {
    const IoTensor io = stream.inputs[i];
    end = std::max(end, static_cast<size_t>(io.offset) + io.bytes());
  }
  auto* memory = executorch::runtime::temp_memory();
  auto* scratch = static_cast<uint8_t*>(memory->allocate(end, 16));
  if (scratch == nullptr) return false;
  for (size_t i = 0; i < stream.inputs.size(); ++i) {
    const Tensor& tensor = args[i]->tensor;
    arm_ethos_io_memcpy(scratch + stream.inputs[i].offset, tensor.data, tensor.nbytes);
  }
  memory->reset();
  return true;
}

}  // namespace hil::ethosu
