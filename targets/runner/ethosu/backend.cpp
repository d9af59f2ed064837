#include "ethosu/backend.h"

#include "core/log.h"
#include "core/program.h"
#include "ethosu/hooks.h"
#include "ethosu/io_layout.h"
#include "ethosu/platform.h"
#include "ethosu/vela_stream.h"

namespace hil::ethosu {

namespace {

constexpr uint32_t kAlive = 0x45544855;   // "UHTE"
constexpr size_t kScratchAlignment = 16;  // the NPU's base pointers

/// What stays of a delegate between its executions.
struct Delegate {
  uint32_t mark = kAlive;
  VelaStream stream;
  void* platform_state = nullptr;
};

/// Calls the hooks however the execution ends.
struct Hooked {
  Hooked() { EthosUBackend_execute_begin(); }
  ~Hooked() { EthosUBackend_execute_end(); }
};

Error find_named_data(const void* program, const char* key, Span<const uint8_t>* out) {
  return static_cast<const Program*>(program)->named_data(key, out);
}

/// Null, after logging, unless `handle` is a delegate that was not destroyed yet.
Delegate* alive(void* handle) {
  auto* delegate = static_cast<Delegate*>(handle);
  if (delegate != nullptr && delegate->mark == kAlive) return delegate;
  HIL_LOG(Error, "Ethos-U delegate handle is null or destroyed");
  return nullptr;
}

/// Every argument against its row, before a byte is copied.
Error check(const VelaStream& stream, Span<Value* const> args) {
  const size_t inputs = stream.inputs.size();
  const size_t outputs = stream.outputs.size();
  if (args.size() != inputs + outputs) {
    HIL_LOG(Error, "Ethos-U delegate has %zu inputs and %zu outputs but %zu arguments", inputs,
            outputs, args.size());
    return Error::InvalidProgram;
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == nullptr || args[i]->tag != Tag::Tensor) {
      HIL_LOG(Error, "Ethos-U argument %zu is no tensor", i);
      return Error::InvalidArgument;
    }
    const bool fits = i < inputs
                          ? input_fits(args[i]->tensor, stream.inputs[i], i)
                          : output_fits(args[i]->tensor, stream.outputs[i - inputs], i - inputs);
    if (!fits) return Error::InvalidProgram;
  }
  return Error::Ok;
}

class EthosUBackend final : public Backend {
 public:
  Error init(DelegateSetup& setup, void** handle) override {
    VelaStream stream;
    HIL_TRY(read_vela_stream(setup.processed, {find_named_data, &setup.program}, &stream));
    void* memory = setup.memory.allocate(sizeof(Delegate), alignof(Delegate));
    if (memory == nullptr) {
      HIL_LOG(Error,
              "method allocator too small for an Ethos-U delegate (%zu bytes); "
              "build with a larger HIL_METHOD_POOL_BYTES",
              sizeof(Delegate));
      return Error::MemoryAllocationFailed;
    }
    auto* delegate = new (memory) Delegate();
    delegate->stream = stream;
    const Error error = platform::open(setup, delegate->stream, &delegate->platform_state);
    if (error != Error::Ok) {
      delegate->mark = 0;
      return error;
    }
    *handle = delegate;
    return Error::Ok;
  }

  Error execute(void* handle, Span<Value* const> args, Arena& temp) override {
    const Hooked hooked;
    Delegate* delegate = alive(handle);
    if (delegate == nullptr) return Error::DelegateInvalidHandle;
    const VelaStream& stream = delegate->stream;
    HIL_TRY(check(stream, args));
    Span<uint8_t> scratch;
    if (!take_scratch(stream.scratch_bytes, temp, &scratch)) return Error::MemoryAllocationFailed;
    for (size_t i = 0; i < stream.inputs.size(); ++i) {
      copy_input(args[i]->tensor, stream.inputs[i], scratch);
    }
    const Error error = platform::invoke(delegate->platform_state, stream, scratch);
    if (error != Error::Ok) {
      HIL_LOG(Error, "Ethos-U invocation failed error (-1)");
      return error;
    }
    const Span<const uint8_t> results(scratch.data(), scratch.size());
    for (size_t i = 0; i < stream.outputs.size(); ++i) {
      copy_output(results, stream.outputs[i], args[stream.inputs.size() + i]->tensor);
    }
    return Error::Ok;
  }

  void destroy(void* handle) override {
    Delegate* delegate = alive(handle);
    if (delegate == nullptr) return;
    platform::close(delegate->platform_state);
    *delegate = Delegate();
    delegate->mark = 0;  // whoever still holds the handle is told
  }

 private:
  static bool take_scratch(size_t bytes, Arena& temp, Span<uint8_t>* out) {
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
};

}  // namespace

Backend& backend() {
  static EthosUBackend instance;
  return instance;
}

BackendEntry entry() { return {"EthosUBackend", &backend()}; }

}  // namespace hil::ethosu
