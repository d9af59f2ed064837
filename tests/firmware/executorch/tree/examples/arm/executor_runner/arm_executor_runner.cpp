// A program that behaves as ExecuTorch's runner for a Corstone with semihosting: newlib, its heap
// and its files, one input set, and the end by _exit. The engine in runtime does the work.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <flatcc/flatcc.h>
#include <unistd.h>

#include "core/backend.h"
#include "core/bundle.h"
#include "core/log.h"
#include "core/method.h"
#include "ethosu/backend.h"

#define POOL(name) __attribute__((section(".bss." name), aligned(32))) uint8_t

extern "C" {
POOL("ethosu_scratch") fast_scratch_pool[FAST_SCRATCH_BYTES + 32];
uint8_t* ethosu_fast_scratch = FAST_SCRATCH_BYTES > 0 ? fast_scratch_pool : nullptr;
size_t ethosu_fast_scratch_size = FAST_SCRATCH_BYTES;
}

namespace hil {

Span<const BackendEntry> backend_table() {
  static BackendEntry entries[1];
  entries[0] = ethosu::entry();
  return {entries, 1};
}

namespace {

constexpr size_t kMaxInputs = 16;
constexpr double kTolerance = 0.01;

POOL("method_allocator_sec") method_pool[METHOD_POOL_BYTES];
POOL("input_file_allocator_sec") file_pool[32 << 20];
POOL("tensor_arena") temp_pool[TEMP_POOL_BYTES];

struct CommandLine {
  const char* model = nullptr;
  const char* base = nullptr;
  const char* inputs[kMaxInputs] = {};
  size_t count = 0;
};

unsigned long shown(uint64_t value) { return static_cast<unsigned long>(value); }

void emit(const char* text, size_t length) { fwrite(text, 1, length, stderr); }

/// A whole file in `pool`, empty when that cannot be.
Span<uint8_t> read_file(const char* path, Arena& pool) {
  FILE* file = fopen(path, "rb");
  if (file == nullptr) {
    HIL_LOG(Fatal, "Could not open file %s (errno: %d) for reading, exiting!", path, errno);
    return {};
  }
  fseek(file, 0, SEEK_END);
  const size_t size = static_cast<size_t>(ftell(file));
  fseek(file, 0, SEEK_SET);
  auto* memory = static_cast<uint8_t*>(pool.allocate(size, 32));
  const size_t got = memory == nullptr ? 0 : fread(memory, 1, size, file);
  fclose(file);
  if (memory == nullptr) HIL_LOG(Fatal, "Failed to allocate input file size:%lu", shown(size));
  if (got != size) return {};
  return {memory, size};
}

CommandLine read_command_line(int argc, char** argv) {
  CommandLine line;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "-m") == 0) line.model = argv[i + 1];
    if (std::strcmp(argv[i], "-o") == 0) line.base = argv[i + 1];
    if (std::strcmp(argv[i], "-i") == 0 && line.count < kMaxInputs) {
      line.inputs[line.count++] = argv[i + 1];
    }
  }
  return line;
}

void report(const Method& method, const Arena& memory, const Arena& temp, size_t program) {
  const MethodUsage& usage = method.usage();
  HIL_LOG(Info, "model_pte_program_size:     %lu bytes.", shown(program));
  HIL_LOG(Info, "model_pte_loaded_size:      %lu bytes.", shown(program));
  HIL_LOG(Info, "method_allocator_used:     %lu / %lu  free: %lu ( used: %lu %% ) ",
          shown(memory.used()), shown(memory.capacity()), shown(memory.available()),
          shown(100 * memory.used() / memory.capacity()));
  HIL_LOG(Info, "method_allocator_planned:  %lu bytes", shown(usage.planned));
  HIL_LOG(Info, "method_allocator_loaded:   %lu bytes", shown(usage.loaded));
  HIL_LOG(Info, "method_allocator_input:    %lu bytes", shown(usage.input));
  HIL_LOG(Info, "method_allocator_executor: %lu bytes", shown(usage.executor));
  HIL_LOG(Info, "temp_allocator:            %lu", shown(temp.capacity()));
}

bool write_outputs(const Method& method, const char* base) {
  HIL_LOG(Info, "%lu outputs: ", shown(method.output_count()));
  for (size_t i = 0; i < method.output_count(); ++i) {
    Span<const uint8_t> bytes;
    if (method.output_bytes(i, &bytes) != Error::Ok) return false;
    char path[256];
    snprintf(path, sizeof(path), "%s-%u.bin", base, static_cast<unsigned>(i));
    HIL_LOG(Info, "Writing output to file: %s", path);
    FILE* file = fopen(path, "wb");
    if (file == nullptr) {
      HIL_LOG(Error, "Could not open output file %s (errno: %d)", path, errno);
      return false;
    }
    const size_t written = fwrite(bytes.data(), 1, bytes.size(), file);
    if (fclose(file) != 0 || written != bytes.size()) {
      HIL_LOG(Error, "Failed to write whole output file %s", path);
      return false;
    }
  }
  return true;
}

bool take_inputs(Method& method, const CommandLine& line, Arena& files) {
  HIL_LOG(Info, "Preparing inputs...");
  if (line.count != method.input_count()) {
    HIL_LOG(Error, "%lu inputs given, the method has %lu", shown(line.count),
            shown(method.input_count()));
    return false;
  }
  for (size_t i = 0; i < line.count; ++i) {
    const Span<uint8_t> bytes = read_file(line.inputs[i], files);
    if (method.set_input(i, {bytes.data(), bytes.size()}) != Error::Ok) return false;
  }
  HIL_LOG(Info, "Input prepared.");
  return true;
}

/// What a bundle brings is run in place of the inputs that were given, and compared.
bool run_cases(Method& method, const Bundle& bundle, const char* name) {
  bool all = true;
  for (size_t i = 0; i < bundle.case_count(name); ++i) {
    bool equal = false;
    HIL_LOG(Info, "Input testset[%d] from bundled bpte", static_cast<int>(i));
    if (bundle.set_inputs(name, i, method) != Error::Ok || method.execute() != Error::Ok ||
        bundle.compare_outputs(name, i, method, kTolerance, kTolerance, &equal) != Error::Ok) {
      return false;
    }
    HIL_LOG(Info, "TEST: BundleIO index[%d] Test_result: %s", static_cast<int>(i),
            equal ? "PASS" : "FAIL");
    all &= equal;
  }
  return all;
}

bool run(const CommandLine& line) {
  Arena files({file_pool, sizeof(file_pool)});
  Arena memory({method_pool, sizeof(method_pool)});
  Arena temp({temp_pool, sizeof(temp_pool)});
  HIL_LOG(Info, "Reading pte model from file %s", line.model);
  const Span<uint8_t> file = read_file(line.model, files);
  if (file.empty()) _exit(1);
  Span<const uint8_t> bytes(file.data(), file.size());
  HIL_LOG(Info, "PTE Model data loaded. Size: %lu bytes.", shown(bytes.size()));
  Bundle bundle;
  const bool bundled = is_bundle(bytes);
  if (bundled) {
    if (bundle.load(bytes) != Error::Ok) return false;
    bytes = bundle.program();
  }
  Program program;
  if (program.load(bytes) != Error::Ok) return false;
  HIL_LOG(Info, "Model buffer loaded, has %lu methods", shown(program.method_count()));
  const char* name = program.method_name(0);
  HIL_LOG(Info, "Running method %s", name);
  HIL_LOG(Info, "Setup Method allocator pool. Size: %lu bytes.", shown(memory.capacity()));
  Method method;
  MethodOptions options;
  options.kernels = kernel_table();
  options.backends = backend_table();
  if (const Error error = method.init(program, name, memory, temp, options); error != Error::Ok) {
    HIL_LOG(Info, "Loading of method %s failed with status 0x%x", name,
            static_cast<unsigned>(error));
    return false;
  }
  HIL_LOG(Info, "Method '%s' loaded.", name);
  if (bundled) return run_cases(method, bundle, name) && write_outputs(method, line.base);
  if (!take_inputs(method, line, files)) return false;
  HIL_LOG(Info, "Starting running 1 inferences...");
  const Error error = method.execute();
  if (error != Error::Ok) {
    HIL_LOG(Info, "Execution of method %s failed with status 0x%x", name,
            static_cast<unsigned>(error));
    return false;
  }
  HIL_LOG(Info, "1 inferences finished");
  report(method, memory, temp, bytes.size());
  return write_outputs(method, line.base);
}

}  // namespace

}  // namespace hil

int main(int argc, char** argv) {
  hil::set_log_sink(hil::emit);
  HIL_LOG(Info, "Running executor with parameter:");
  if (argc < 7) {
    HIL_LOG(Fatal, "Not right number of parameters!");
    HIL_LOG(Fatal, "app -m model.pte -i input.bin [-i input2.bin] -o output_basename");
    HIL_LOG(Fatal, "Exiting!");
    _exit(1);
  }
  if (flatcc_runtime() == 0) _exit(1);
  const bool done = hil::run(hil::read_command_line(argc, argv));
  HIL_LOG(Info, "Model run: %d", done);
  HIL_LOG(Info, "Program complete, exiting.");
  _exit(0);
}
