// A Cortex-A whose Linux drives the NPU, by the C++ interface of Arm's driver library (ethosu.hpp).
// The calls are those that ExecuTorch's backends/arm/runtime makes, and cancel(); its messages are
// said here, too, so that one reader understands both. The library throws: no exception leaves
// this file, and the rest of the runner is built without them.
#include <ethosu.hpp>

#include <memory>
#include <new>
#include <vector>

#include "core/log.h"
#include "ethosu/cop2.h"
#include "ethosu/io_layout.h"
#include "ethosu/linux/batch.h"
#include "ethosu/linux/options.h"
#include "ethosu/platform.h"

namespace hil::ethosu::platform {

namespace {

using linux_driver::Batch;
using linux_driver::Options;
using BufferPointer = std::shared_ptr<EthosU::Buffer>;

/// The tensors of one region, and the buffers in which they lie.
struct Region {
  Batch batch;
  std::vector<BufferPointer> buffers;

  EthosU::Buffer* of(size_t tensor) const {
    const size_t index = batch.buffer_of[tensor];
    return index == Batch::kNone ? nullptr : buffers[index].get();
  }
};

/// What is made once, when the method is loaded.
struct Driven {
  Options options;
  std::unique_ptr<EthosU::Device> device;
  std::shared_ptr<EthosU::Network> network;
  BufferPointer constant, intermediate;
  Region inputs, outputs;
};

/// One buffer, or one that says that there is none: the driver has none of size 0.
BufferPointer make_buffer(EthosU::Device& device, size_t bytes) {
  if (bytes == 0) return std::make_shared<EthosU::Buffer>();
  return device.createBuffers({bytes}).front();
}

/// The library does not write to what it is given, and takes it as if it did.
void write(EthosU::Buffer& buffer, const uint8_t* bytes, size_t size) {
  buffer.write(const_cast<char*>(reinterpret_cast<const char*>(bytes)), size);
}

void read(EthosU::Buffer& buffer, uint8_t* bytes, size_t size) {
  buffer.read(reinterpret_cast<char*>(bytes), size);
}

void make_buffers(EthosU::Device& device, Region& region) {
  if (!region.batch.sizes.empty()) region.buffers = device.createBuffers(region.batch.sizes);
}

/// Throws what the library does.
Error set_up(const DelegateSetup& setup, const VelaStream& stream, Driven& driven) {
  Cop2 container;
  HIL_TRY(linux_driver::read_options(setup.compile_specs, &driven.options));
  HIL_TRY(read_cop2(stream.commands, &container));
  HIL_TRY(plan_batch(stream.inputs, "input", &driven.inputs.batch));
  HIL_TRY(plan_batch(stream.outputs, "output", &driven.outputs.batch));
  driven.device = std::make_unique<EthosU::Device>(driven.options.device);
  EthosU::Device& device = *driven.device;
  HIL_LOG(Info, "ethosu_stream: for config 0x%08x, id 0x%08x",
          static_cast<unsigned>(container.config), static_cast<unsigned>(container.id));
  driven.network =
      std::make_shared<EthosU::Network>(device, stream.commands.data(), stream.commands.size());
  driven.constant = make_buffer(device, stream.weights.size());
  if (!stream.weights.empty()) {
    write(*driven.constant, stream.weights.data(), stream.weights.size());
  }
  driven.intermediate = make_buffer(device, stream.scratch_bytes);
  make_buffers(device, driven.inputs);
  make_buffers(device, driven.outputs);
  HIL_LOG(Info, "ethosu_buffers: commands %zu, weights %zu, intermediate %zu, cache %llu",
          container.commands.size(), stream.weights.size(), stream.scratch_bytes,
          static_cast<unsigned long long>(container.cache_bytes));
  return Error::Ok;
}

const char* name_of(EthosU::InferenceStatus status) {
  switch (status) {
    case EthosU::InferenceStatus::OK:
      return "OK";
    case EthosU::InferenceStatus::RUNNING:
      return "RUNNING";
    case EthosU::InferenceStatus::REJECTED:
      return "REJECTED";
    case EthosU::InferenceStatus::ABORTED:
      return "ABORTED";
    case EthosU::InferenceStatus::ABORTING:
      return "ABORTING";
    case EthosU::InferenceStatus::PENDING:
      return "PENDING";
    default:
      return "ERROR";
  }
}

/// The NPU must not go on to write into buffers that are used again.
Error time_out(const EthosU::Inference& inference, int64_t limit) {
  HIL_LOG(Error, "Ethos-U inference timed out after %lld ns", static_cast<long long>(limit));
  const bool cancelled = inference.cancel();
  HIL_LOG(Error, "Ethos-U inference %s", cancelled ? "was cancelled" : "could not be cancelled");
  return Error::InvalidState;
}

Error run(Driven& driven) {
  const Options& options = driven.options;
  const std::vector<BufferPointer>&in = driven.inputs.buffers, &out = driven.outputs.buffers;
  const EthosU::Inference inference(driven.network, in.begin(), in.end(), out.begin(), out.end(),
                                    driven.intermediate, driven.constant, options.pmu_events,
                                    options.cycle_counter);
  if (inference.wait(options.timeout_ns)) return time_out(inference, options.timeout_ns);
  const EthosU::InferenceStatus status = inference.status();
  if (status != EthosU::InferenceStatus::OK) {
    HIL_LOG(Error, "Ethos-U inference failed with status %s", name_of(status));
    return Error::InvalidState;
  }
  if (options.cycle_counter) {
    HIL_LOG(Info, "Ethos-U Linux delegate cycle counter: %llu",
            static_cast<unsigned long long>(inference.getCycleCounter()));
  }
  return Error::Ok;
}

/// An output that is laid out otherwise comes by way of `temp`.
Error fetch(EthosU::Buffer& buffer, const IoTensor& io, const Tensor& tensor, Arena& temp) {
  if (!is_adjusted(tensor, io)) {
    read(buffer, tensor.data, tensor.nbytes);
    return Error::Ok;
  }
  const size_t mark = temp.used();
  auto* staging = static_cast<uint8_t*>(temp.allocate(io.bytes(), 1));
  if (staging == nullptr) {
    HIL_LOG(Error,
            "Failed to allocate output buffer of %zu bytes from temp_allocator; "
            "build with a larger HIL_TEMP_POOL_BYTES",
            io.bytes());
    return Error::MemoryAllocationFailed;
  }
  read(buffer, staging, io.bytes());
  copy_output(staging, io, tensor);
  temp.rewind(mark);
  return Error::Ok;
}

Error execute_driven(Driven& driven, const VelaStream& stream, Span<Value* const> args,
                     Arena& temp) {
  const size_t inputs = stream.inputs.size();
  for (size_t i = 0; i < inputs; ++i) {
    const Tensor& tensor = args[i]->tensor;
    if (EthosU::Buffer* buffer = driven.inputs.of(i)) write(*buffer, tensor.data, tensor.nbytes);
  }
  HIL_TRY(run(driven));
  for (size_t i = 0; i < stream.outputs.size(); ++i) {
    EthosU::Buffer* buffer = driven.outputs.of(i);
    if (buffer == nullptr) continue;
    HIL_TRY(fetch(*buffer, stream.outputs[i], args[inputs + i]->tensor, temp));
  }
  return Error::Ok;
}

/// The library's exceptions, and those of its memory, as errors.
template <typename Step>
Error guarded(Step step) {
  try {
    return step();
  } catch (const std::exception& error) {
    HIL_LOG(Error, "Ethos-U Linux driver invocation failed: %s", error.what());
    return Error::InvalidState;
  }
}

}  // namespace

Placement placement() { return Placement::Separate; }

Error open(const DelegateSetup& setup, const VelaStream& stream, void** state) {
  void* memory = setup.memory.allocate(sizeof(Driven), alignof(Driven));
  if (memory == nullptr) {
    HIL_LOG(Error,
            "method allocator too small for an Ethos-U driver's state (%zu bytes); "
            "build with a larger HIL_METHOD_POOL_BYTES",
            sizeof(Driven));
    return Error::MemoryAllocationFailed;
  }
  auto* driven = new (memory) Driven();
  const Error error = guarded([&] { return set_up(setup, stream, *driven); });
  if (error != Error::Ok) {
    driven->~Driven();
    return error;
  }
  *state = driven;
  return Error::Ok;
}

Error execute(void* state, const VelaStream& stream, Span<Value* const> args, Arena& temp) {
  auto& driven = *static_cast<Driven*>(state);
  return guarded([&] { return execute_driven(driven, stream, args, temp); });
}

void close(void* state) { static_cast<Driven*>(state)->~Driven(); }

}  // namespace hil::ethosu::platform
