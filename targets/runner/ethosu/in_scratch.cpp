#include "ethosu/in_scratch.h"

#include "core/log.h"
#include "ethosu/io_layout.h"

namespace hil::ethosu {

namespace {

constexpr size_t kScratchAlignment = 16;  // the NPU's base pointers

bool take_scratch(size_t bytes, Arena& temp, Span<uint8_t>* out) {
  if (bytes == 0) return true;
  auto* memory = static_cast<uint8_t*>(temp.allocate(bytes, kScratchAlignment));
  if (memory == nullptr) {
    HIL_LOG(Error,
            "Failed to allocate scratch buffer of %zu bytes from temp_allocator; "
            "build with a larger HIL_TEMP_POOL_BYTES",
            bytes);
    return false;
  }
  *out = Span<uint8_t>(memory, bytes);
  return true;
}

}  // namespace

Error execute_in_scratch(const VelaStream& stream, Span<Value* const> args, Arena& temp,
                         InvokeInScratch invoke, void* state) {
  Span<uint8_t> scratch;
  if (!take_scratch(stream.scratch_bytes, temp, &scratch)) return Error::MemoryAllocationFailed;
  const size_t inputs = stream.inputs.size();
  for (size_t i = 0; i < inputs; ++i) {
    const IoTensor io = stream.inputs[i];
    copy_input(args[i]->tensor, scratch.data() + io.offset);
  }
  const Error error = invoke(state, stream, scratch);
  if (error != Error::Ok) {
    HIL_LOG(Error, "Ethos-U invocation failed error (-1)");
    return error;
  }
  for (size_t i = 0; i < stream.outputs.size(); ++i) {
    const IoTensor io = stream.outputs[i];
    copy_output(scratch.data() + io.offset, io, args[inputs + i]->tensor);
  }
  return Error::Ok;
}

}  // namespace hil::ethosu
