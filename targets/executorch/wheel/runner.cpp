// ExecuTorch's own runtime, as its wheel has it compiled, behind the command line, the log and the
// platform of the bundled runner: everything that happens to a tensor here is done by ExecuTorch.
#include "runner.h"

#include <cstring>
#include <string>
#include <vector>

#include <sys/stat.h>

#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor_ptr_maker.h>
#include <executorch/runtime/platform/platform.h>

#include "arguments.h"
#include "core/format.h"
#include "core/log.h"
#include "ports/platform.h"

namespace hil {

namespace {

namespace et = executorch::runtime;
using executorch::aten::Tensor;
using executorch::extension::Module;
using executorch::extension::TensorPtr;

/// What ExecuTorch logs, in the grammar of its Arm runner.
void log_of_executorch(et_timestamp_t, et_pal_log_level_t level, const char* file,
                       const char* function, size_t line, const char* message, size_t) {
  log(static_cast<LogLevel>(level), file, static_cast<int>(line), function, "%s", message);
}

void complain(const char* what, const char* name, et::Error error) {
  HIL_LOG(Error, "%s of method %s failed with status 0x%x (%s)", what, name,
          static_cast<unsigned>(error), et::to_string(error));
}

class Runner {
 public:
  explicit Runner(const Arguments& arguments)
      : arguments_(arguments), files_(platform::pools().files), module_(arguments.model) {}
  bool run();

 private:
  bool load();
  bool choose_method();
  bool run_set(size_t number);
  bool read_input(const et::MethodMeta& meta, size_t index, const char* path);
  bool write_output(const et::EValue& value, size_t index, const char* base);
  void report_memory();

  const Arguments& arguments_;
  Arena files_;
  Module module_;
  std::string method_;
  std::vector<TensorPtr> inputs_;
};

bool Runner::run() {
  if (!load()) return false;
  for (size_t set = 0; set < arguments_.set_count; ++set) {
    if (!run_set(set)) return false;
  }
  report_memory();
  if (arguments_.set_count == 0) HIL_LOG(Error, "no output base given (-o)");
  return arguments_.set_count > 0;
}

bool Runner::load() {
  const size_t length = std::strlen(arguments_.model);
  if (length > 5 && std::strcmp(arguments_.model + length - 5, ".bpte") == 0) {
    HIL_LOG(Error, "'%s' is a bundled program, which this runner does not open", arguments_.model);
    return false;
  }
  const et::Error error = module_.load(et::Program::Verification::InternalConsistency);
  if (error != et::Error::Ok) {
    HIL_LOG(Error, "Program loading failed with status 0x%x (%s)", static_cast<unsigned>(error),
            et::to_string(error));
    return false;
  }
  if (!choose_method()) return false;
  HIL_LOG(Info, "Running method %s", method_.c_str());
  const et::Error loaded = module_.load_method(method_);
  if (loaded != et::Error::Ok) {
    complain("Loading", method_.c_str(), loaded);
    return false;
  }
  HIL_LOG(Info, "Method loaded.");
  return true;
}

/// The first of the program's, as in the other runners.
bool Runner::choose_method() {
  const auto& program = module_.program();
  HIL_LOG(Info, "Model buffer loaded, has %zu methods", program->num_methods());
  const auto name = program->get_method_name(0);
  if (!name.ok()) {
    HIL_LOG(Error, "the program has no method");
    return false;
  }
  method_ = *name;
  return true;
}

bool Runner::run_set(size_t number) {
  const InputSet& set = arguments_.sets[number];
  const auto meta = module_.method_meta(method_);
  if (!meta.ok()) {
    complain("Reading", method_.c_str(), meta.error());
    return false;
  }
  if (set.output_base == nullptr) {
    HIL_LOG(Error, "no output base given (-o)");
    return false;
  }
  if (set.input_count != meta->num_inputs()) {
    HIL_LOG(Error, "wrong number of inputs: expected %zu, got %zu", meta->num_inputs(),
            set.input_count);
    return false;
  }
  inputs_.clear();
  files_.rewind(0);
  for (size_t i = 0; i < set.input_count; ++i) {
    if (!read_input(*meta, i, arguments_.inputs[set.first_input + i])) return false;
  }
  HIL_LOG(Info, "Starting the model execution...");
  const auto outputs =
      module_.execute(method_, std::vector<et::EValue>(inputs_.begin(), inputs_.end()));
  if (!outputs.ok()) {
    complain("Execution", method_.c_str(), outputs.error());
    return false;
  }
  HIL_LOG(Info, "Finished running set %zu", number);
  for (size_t i = 0; i < outputs->size(); ++i) {
    if (!write_output((*outputs)[i], i, set.output_base)) return false;
  }
  return true;
}

bool Runner::read_input(const et::MethodMeta& meta, size_t index, const char* path) {
  const auto tensor = meta.input_tensor_meta(index);
  if (!tensor.ok()) {
    HIL_LOG(Error, "input %zu is no tensor, and only tensors can be given", index);
    return false;
  }
  Span<const uint8_t> bytes;
  uint64_t size = 0;
  if (platform::read_file(path, files_, &bytes, &size) != Error::Ok) {
    HIL_LOG(Error, "cannot read input '%s'", path);
    return false;
  }
  if (bytes.size() != tensor->nbytes()) {
    HIL_LOG(Error, "input %zu has %zu bytes, '%s' has %zu", index, tensor->nbytes(), path,
            bytes.size());
    return false;
  }
  const auto sizes = tensor->sizes();
  const auto order = tensor->dim_order();
  auto* data = const_cast<uint8_t*>(bytes.data());  // in files_, of which nobody else has this part
  inputs_.push_back(executorch::extension::make_tensor_ptr(
      {sizes.begin(), sizes.end()}, data, {order.begin(), order.end()}, {}, tensor->scalar_type()));
  return true;
}

bool Runner::write_output(const et::EValue& value, size_t index, const char* base) {
  if (!value.isTensor()) {
    HIL_LOG(Error, "output %zu is no tensor, and only tensors are written", index);
    return false;
  }
  const Tensor tensor = value.toTensor();
  char path[256];
  const size_t length = format_to(path, sizeof(path), "%s-%zu.bin", base, index);
  const Span<const uint8_t> bytes(tensor.const_data_ptr<uint8_t>(), tensor.nbytes());
  if (length + 1 == sizeof(path) || !platform::write_file(path, bytes)) {
    HIL_LOG(Error, "cannot write output %zu (%zu bytes) to '%s'", index, bytes.size(), path);
    return false;
  }
  return true;
}

void Runner::report_memory() {
  struct stat file;
  if (::stat(arguments_.model, &file) == 0) {
    HIL_LOG(Info, "model_pte_program_size:     %zu bytes.", static_cast<size_t>(file.st_size));
  }
  const auto meta = module_.method_meta(method_);
  uint64_t planned = 0;
  for (size_t i = 0; meta.ok() && i < meta->num_memory_planned_buffers(); ++i) {
    const auto size = meta->memory_planned_buffer_size(i);
    if (size.ok()) planned += static_cast<uint64_t>(*size);
  }
  HIL_LOG(Info, "method_allocator_planned:  %llu bytes", static_cast<unsigned long long>(planned));
  if (const uint64_t peak = platform::peak_resident(); peak > 0) {
    HIL_LOG(Info, "vm_hwm: %llu bytes", static_cast<unsigned long long>(peak));
  }
}

void report_build() {
  const Span<const uint8_t> id = platform::build_id();
  char hex[2 * 32 + 1] = "none";
  for (size_t i = 0; i < id.size() && i < 32; ++i) format_to(hex + 2 * i, 3, "%02x", id[i]);
  HIL_LOG(Info, "build id %s", hex);
}

}  // namespace

int run(int argc, const char* const* argv) {
  set_log_sink(platform::write_log);
  et::register_pal(et::PalImpl::create(log_of_executorch, __FILE__));
  report_build();
  Arguments arguments;
  if (!parse_arguments(argc, argv, &arguments)) return 1;
  if (arguments.profile) HIL_LOG(Info, "no clock on this platform: -p measures nothing");
  if (!Runner(arguments).run()) return 1;
  HIL_LOG(Info, "Program complete, exiting.");
  return 0;
}

}  // namespace hil
