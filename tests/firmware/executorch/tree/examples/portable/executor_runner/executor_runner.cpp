// A program that behaves as ExecuTorch's runner for a machine with an operating system: flags, one
// input set, its outputs in files, and an abort where something is wrong. The engine in runtime
// does the work.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/executor/memory_manager.h>

#include "core/backend.h"
#include "core/log.h"
#include "core/method.h"
#if defined(EXECUTORCH_BUILD_ARM_ETHOSU_LINUX)
#include "ethosu/backend.h"
#endif

static uint8_t method_allocator_pool[4 * 1024U * 1024U];
static uint8_t temp_allocator_pool[1024U * 1024U];
static uint8_t engine_pool[1024U * 1024U];

using executorch::runtime::MemoryAllocator;
using executorch::runtime::MemoryManager;

namespace hil {

Span<const BackendEntry> backend_table() {
#if defined(EXECUTORCH_BUILD_ARM_ETHOSU_LINUX)
  static BackendEntry entries[1];
  entries[0] = ethosu::entry();
  return {entries, 1};
#else
  return {};
#endif
}

namespace {

void emit(const char* text, size_t length) { fwrite(text, 1, length, stderr); }

void check(Error error, const char* what) {
  if (error == Error::Ok) return;
  HIL_LOG(Fatal, "%s failed with status 0x%x", what, static_cast<unsigned>(error));
  std::abort();
}

std::vector<uint8_t> contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const char* flag(int argc, char** argv, const char* name) {
  const size_t length = std::strlen(name);
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], name, length) == 0 && argv[i][length] == '=') {
      return argv[i] + length + 1;
    }
  }
  return "";
}

void write_outputs(const Method& method, const char* base) {
  HIL_LOG(Info, "%zu outputs: ", method.output_count());
  for (size_t i = 0; i < method.output_count(); ++i) {
    Span<const uint8_t> bytes;
    check(method.output_bytes(i, &bytes), "get_outputs");
    const std::string path = std::string(base) + "-" + std::to_string(i) + ".bin";
    HIL_LOG(Info, "Writing output to file: %s", path.c_str());
    FILE* file = fopen(path.c_str(), "wb");
    if (file == nullptr) std::abort();
    fwrite(bytes.data(), 1, bytes.size(), file);
    fclose(file);
  }
}

}  // namespace

}  // namespace hil

int main(int argc, char** argv) {
  using namespace hil;
  set_log_sink(emit);
  const char* path = flag(argc, argv, "--model_path");
  const std::vector<uint8_t> file = contents(path);
  Program program;
  check(program.load({file.data(), file.size()}), "Program::load");
  HIL_LOG(Info, "Model file %s is loaded.", path);
  const char* name = program.method_name(0);
  HIL_LOG(Info, "Using method %s", name);

  MemoryAllocator method_allocator{
      MemoryAllocator(sizeof(method_allocator_pool), method_allocator_pool)};
  MemoryAllocator temp_allocator{MemoryAllocator(sizeof(temp_allocator_pool), temp_allocator_pool)};
  MemoryManager memory_manager(&method_allocator, nullptr, &temp_allocator);
  (void)&memory_manager;
  Arena memory({method_allocator_pool, sizeof(method_allocator_pool)});
  Arena temp({engine_pool, sizeof(engine_pool)});
  MethodOptions options;
  options.kernels = kernel_table();
  options.backends = backend_table();
  Method method;
  check(method.init(program, name, memory, temp, options), "Loading of method");

  std::stringstream names(flag(argc, argv, "--inputs"));
  std::vector<std::vector<uint8_t>> inputs;
  for (std::string one; std::getline(names, one, ',');) inputs.push_back(contents(one));
  for (size_t i = 0; i < inputs.size(); ++i) {
    check(method.set_input(i, {inputs[i].data(), inputs[i].size()}), "set_input");
  }
  check(method.execute(), "Execution of method");
  HIL_LOG(Info, "Model executed successfully 1 time(s) in 0.000000 ms.");
  write_outputs(method, flag(argc, argv, "--output_file"));
  return 0;
}
