#include "runner.h"

#include <cstring>

#include "arguments.h"
#include "core/backend.h"
#include "core/bundle.h"
#include "core/format.h"
#include "core/log.h"
#include "core/method.h"
#include "ports/platform.h"

namespace hil {

namespace {

#ifndef HIL_CLOCK_FIGURE
#define HIL_CLOCK_FIGURE "system_counter_ticks"
#endif

constexpr double kRtol = 0.01;  // ExecuTorch's arm_executor_runner compares bundles with these
constexpr double kAtol = 0.01;

class Runner {
 public:
  explicit Runner(const Arguments& arguments);
  bool run();

 private:
  bool read(const char* path, const char* what, Span<const uint8_t>* out);
  bool load();
  bool load_program(Span<const uint8_t> bytes);
  bool run_sets();
  bool run_bundled_cases();
  bool load_inputs(const InputSet& set);
  bool execute(size_t set);
  bool write_outputs(const char* base);
  bool expects_inputs() const { return arguments_.input_count > 0; }
  void report_build() const;
  void report_set(size_t set, uint64_t ticks) const;
  void report_memory() const;
  void report_pool(const char* name, uint64_t used, uint64_t total) const;

  const Arguments& arguments_;
  Arena method_memory_;
  Arena temp_;
  Arena files_;
  platform::Clock clock_;
  Span<const uint8_t> file_;
  Span<const uint8_t> program_bytes_;
  bool bundled_ = false;
  Bundle bundle_;
  Program program_;
  Method method_;
};

Runner::Runner(const Arguments& arguments) : arguments_(arguments), clock_(platform::clock()) {
  const platform::Pools pools = platform::pools();
  method_memory_ = Arena(pools.method);
  temp_ = Arena(pools.temp);
  files_ = Arena(pools.files);
}

bool Runner::run() {
  report_build();
  if (!load()) return false;
  const bool done = bundled_ && !expects_inputs() ? run_bundled_cases() : run_sets();
  report_memory();
  return done;
}

bool Runner::read(const char* path, const char* what, Span<const uint8_t>* out) {
  uint64_t size = 0;
  switch (platform::read_file(path, files_, out, &size)) {
    case Error::Ok:
      return true;
    case Error::MemoryAllocationFailed:
      HIL_LOG(Error,
              "input file allocator too small for %s '%s': %llu bytes needed, %llu available; "
              "build with a larger HIL_FILE_POOL_BYTES",
              what, path, static_cast<unsigned long long>(size),
              static_cast<unsigned long long>(files_.available()));
      return false;
    case Error::NotFound:
      HIL_LOG(Error, "cannot open %s '%s'", what, path);
      return false;
    default:
      HIL_LOG(Error, "cannot read %s '%s'", what, path);
      return false;
  }
}

bool Runner::load() {
  if (!read(arguments_.model, "program", &file_)) return false;
  bundled_ = is_bundle(file_);
  program_bytes_ = file_;
  if (bundled_) {
    if (bundle_.load(file_) != Error::Ok) return false;
    program_bytes_ = bundle_.program();
  }
  if (program_.load(program_bytes_) != Error::Ok) return false;
  HIL_LOG(Info, "Model buffer loaded, has %zu methods", program_.method_count());
  const char* name = program_.method_name(0);
  HIL_LOG(Info, "Running method %s", name == nullptr ? "" : name);
  MethodOptions options;
  options.kernels = kernel_table();
  options.backends = backend_table();
  if (arguments_.profile) options.clock = clock_;
  if (arguments_.profile && clock_ == nullptr) {
    HIL_LOG(Info, "no clock on this platform: -p measures nothing");
  }
  const Error error = method_.init(program_, name, method_memory_, temp_, options);
  if (error != Error::Ok) {
    HIL_LOG(Error, "Loading of method %s failed with status 0x%x (%s)", name == nullptr ? "" : name,
            static_cast<unsigned>(error), error_name(error));
    return false;
  }
  HIL_LOG(Info, "Method loaded.");
  return true;
}

bool Runner::run_sets() {
  if (!expects_inputs() && method_.input_count() > 0) {
    HIL_LOG(Error, "no inputs given (-i) and the program is not bundled with any");
    return false;
  }
  for (size_t set = 0; set < arguments_.set_count; ++set) {
    const InputSet& wanted = arguments_.sets[set];
    if (wanted.output_base == nullptr) {
      HIL_LOG(Error, "no output base given (-o)");
      return false;
    }
    if (!load_inputs(wanted) || !execute(set) || !write_outputs(wanted.output_base)) return false;
  }
  if (arguments_.set_count == 0) HIL_LOG(Error, "no output base given (-o)");
  return arguments_.set_count > 0;
}

bool Runner::load_inputs(const InputSet& set) {
  if (set.input_count != method_.input_count()) {
    HIL_LOG(Error, "wrong number of inputs: expected %zu, got %zu", method_.input_count(),
            set.input_count);
    return false;
  }
  const uint64_t mark = files_.used();
  for (size_t i = 0; i < set.input_count; ++i) {
    const char* path = arguments_.inputs[set.first_input + i];
    Span<const uint8_t> bytes;
    if (!read(path, "input", &bytes)) return false;
    if (method_.set_input(i, bytes) != Error::Ok) {
      HIL_LOG(Error, "cannot use '%s' as input %zu", path, i);
      return false;
    }
    files_.rewind(mark);
  }
  return true;
}

bool Runner::execute(size_t set) {
  HIL_LOG(Info, "Starting the model execution...");
  const uint64_t start = clock_ != nullptr ? clock_() : 0;
  const Error error = method_.execute();
  const uint64_t ticks = clock_ != nullptr ? clock_() - start : 0;
  if (error != Error::Ok) {
    HIL_LOG(Error, "Execution of method %s failed with status 0x%x (%s)", program_.method_name(0),
            static_cast<unsigned>(error), error_name(error));
    return false;
  }
  HIL_LOG(Info, "Finished running set %zu", set);
  report_set(set, ticks);
  return true;
}

bool Runner::write_outputs(const char* base) {
  for (size_t i = 0; i < method_.output_count(); ++i) {
    char path[256];
    const size_t length = format_to(path, sizeof(path), "%s-%zu.bin", base, i);
    Span<const uint8_t> bytes;
    if (method_.output_bytes(i, &bytes) != Error::Ok) return false;
    if (length + 1 == sizeof(path) || !platform::write_file(path, bytes)) {
      HIL_LOG(Error, "cannot write output %zu (%zu bytes) to '%s'", i, bytes.size(), path);
      return false;
    }
  }
  return true;
}

bool Runner::run_bundled_cases() {
  const char* name = program_.method_name(0);
  const size_t count = bundle_.case_count(name);
  if (count == 0) {
    HIL_LOG(Error, "no inputs given (-i) and the bundle has no test case for method %s", name);
    return false;
  }
  bool all_passed = true;
  for (size_t i = 0; i < count; ++i) {
    bool passed = false;
    if (bundle_.set_inputs(name, i, method_) != Error::Ok || !execute(i) ||
        bundle_.compare_outputs(name, i, method_, kRtol, kAtol, &passed) != Error::Ok) {
      return false;
    }
    HIL_LOG(Info, "TEST: BundleIO index[%zu] Test_result: %s", i, passed ? "PASS" : "FAIL");
    all_passed &= passed;
    const char* base = i < arguments_.set_count ? arguments_.sets[i].output_base : nullptr;
    if (base != nullptr && !write_outputs(base)) return false;
  }
  if (!all_passed) HIL_LOG(Error, "a bundled test case failed");
  return all_passed;
}

// --- Reports ---------------------------------------------------------------------------------

void Runner::report_build() const {
  const Span<const uint8_t> id = platform::build_id();
  char hex[2 * 32 + 1] = "none";
  for (size_t i = 0; i < id.size() && i < 32; ++i) format_to(hex + 2 * i, 3, "%02x", id[i]);
  HIL_LOG(Info, "build id %s", hex);
}

void Runner::report_set(size_t set, uint64_t ticks) const {
  if (clock_ == nullptr) return;
  HIL_LOG(Info, HIL_CLOCK_FIGURE ": %llu (set %zu)", static_cast<unsigned long long>(ticks), set);
  const Span<const uint64_t> each = method_.instruction_ticks();
  for (size_t i = 0; i < each.size(); ++i) {
    HIL_LOG(Info, "op_ticks: %zu %zu %s %llu", set, i, instruction_name(method_.instructions()[i]),
            static_cast<unsigned long long>(each[i]));
  }
}

void Runner::report_pool(const char* name, uint64_t used, uint64_t total) const {
  const uint64_t percent = total == 0 ? 0 : used * 100 / total;
  HIL_LOG(Info, "%s %llu / %llu free: %llu ( used: %llu %% )", name,
          static_cast<unsigned long long>(used), static_cast<unsigned long long>(total),
          static_cast<unsigned long long>(total - used), static_cast<unsigned long long>(percent));
}

void Runner::report_memory() const {
  const MethodUsage& usage = method_.usage();
  HIL_LOG(Info, "model_pte_program_size:     %zu bytes.", program_bytes_.size());
  HIL_LOG(Info, "model_pte_loaded_size:      %zu bytes.", file_.size());
  report_pool("input_file_allocator_used: ", files_.high_water(), files_.capacity());
  report_pool("method_allocator_used:     ", method_memory_.used(), method_memory_.capacity());
  const struct {
    const char* name;
    uint64_t bytes;
  } parts[] = {
      {"method_allocator_planned: ", usage.planned},
      {"method_allocator_loaded:  ", usage.loaded},
      {"method_allocator_input:   ", usage.input},
      {"method_allocator_executor:", usage.executor},
  };
  for (const auto& part : parts) {
    HIL_LOG(Info, "%s %llu bytes", part.name, static_cast<unsigned long long>(part.bytes));
  }
  report_pool("temp_allocator:            ", temp_.high_water(), temp_.capacity());
  const platform::StackUse stack = platform::stack_use();
  if (stack.total > 0) {
    HIL_LOG(Info, "stack_high_water: %zu / %zu bytes", stack.high_water, stack.total);
  }
  if (const uint64_t peak = platform::peak_resident(); peak > 0) {
    HIL_LOG(Info, "vm_hwm: %llu bytes", static_cast<unsigned long long>(peak));
  }
}

}  // namespace

int run(int argc, const char* const* argv) {
  set_log_sink(platform::write_log);
  Arguments arguments;
  if (!parse_arguments(argc, argv, &arguments)) return 1;
  Runner runner(arguments);
  if (!runner.run()) return 1;
  HIL_LOG(Info, "Program complete, exiting.");
  return 0;
}

}  // namespace hil
