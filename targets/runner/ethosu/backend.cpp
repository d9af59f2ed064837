#include "ethosu/backend.h"

#include "core/log.h"
#include "core/program.h"
#include "ethosu/hooks.h"
#include "ethosu/io_layout.h"
#include "ethosu/platform.h"
#include "ethosu/vela_stream.h"

namespace hil::ethosu {

namespace {

constexpr uint32_t kAlive = 0x45544855;  // "UHTE"

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

/// What Vela compiled is for a machine like this one.
Error check_placement(const VelaStream& stream) {
  const bool has_tensors = stream.inputs.size() + stream.outputs.size() > 0;
  if (!has_tensors || stream.placement == platform::placement()) return Error::Ok;
  if (stream.placement == Placement::Separate) {
    HIL_LOG(Error,
            "Ethos-U inputs and outputs lie in regions of their own, as a driver of Linux takes "
            "them (direct drive), not in scratch");
  } else {
    HIL_LOG(
        Error,
        "Ethos-U inputs and outputs lie in scratch, as bare metal takes them; a driver of Linux "
        "takes them in regions of their own: compile with --separate-io-regions and "
        "--cop-format=COP2 (direct drive)");
  }
  return Error::NotSupported;
}

class EthosUBackend final : public Backend {
 public:
  Error init(DelegateSetup& setup, void** handle) override {
    VelaStream stream;
    HIL_TRY(read_vela_stream(setup.processed, {find_named_data, &setup.program}, &stream));
    HIL_TRY(check_placement(stream));
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
    return platform::execute(delegate->platform_state, stream, args, temp);
  }

  void destroy(void* handle) override {
    Delegate* delegate = alive(handle);
    if (delegate == nullptr) return;
    platform::close(delegate->platform_state);
    *delegate = Delegate();
    delegate->mark = 0;  // whoever still holds the handle is told
  }
};

}  // namespace

Backend& backend() {
  static EthosUBackend instance;
  return instance;
}

BackendEntry entry() { return {"EthosUBackend", &backend()}; }

}  // namespace hil::ethosu
