// Executes every method of the programs named on the command line, for
// tests/kernels/test_portable_library.py:
//   kernel_calls A.pte B.pte > RESULTS
// RESULTS has for each method, in order, 32-bit words: the error's code, and when that is 0 the
// number of outputs and for each of them its size and its bytes in memory order. What is logged
// goes to the error stream, after the method's name.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/log.h"
#include "core/method.h"

namespace {

constexpr size_t kPool = 1 << 20;

void put(uint32_t word) { std::fwrite(&word, sizeof(word), 1, stdout); }

hil::Error run(const hil::Program& program, const char* name, hil::Method& method) {
  alignas(32) static uint8_t memory[kPool], scratch[kPool];
  std::memset(memory, 0, sizeof(memory));
  static hil::Arena arena, temp;
  arena = hil::Arena({memory, kPool});
  temp = hil::Arena({scratch, kPool});
  hil::MethodOptions options;
  options.kernels = hil::kernel_table();
  const hil::Error error = method.init(program, name, arena, temp, options);
  return error == hil::Error::Ok ? method.execute() : error;
}

void report(const hil::Method& method) {
  put(static_cast<uint32_t>(method.output_count()));
  for (size_t i = 0; i < method.output_count(); ++i) {
    hil::Span<const uint8_t> bytes;
    if (method.output_bytes(i, &bytes) != hil::Error::Ok) std::abort();
    put(static_cast<uint32_t>(bytes.size()));
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  }
}

int run_file(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return 1;
  std::fseek(file, 0, SEEK_END);
  const size_t size = static_cast<size_t>(std::ftell(file));
  std::rewind(file);
  void* copy = nullptr;
  if (::posix_memalign(&copy, 32, size + 1) != 0) return 1;
  const bool whole = std::fread(copy, 1, size, file) == size;
  std::fclose(file);
  hil::Program program;
  const hil::Span<const uint8_t> bytes(static_cast<const uint8_t*>(copy), size);
  if (!whole || program.load(bytes) != hil::Error::Ok) return 1;
  for (size_t i = 0; i < program.method_count(); ++i) {
    const char* name = program.method_name(i);
    std::fprintf(stderr, "method %s\n", name);
    hil::Method method;
    const hil::Error error = run(program, name, method);
    put(static_cast<uint32_t>(error));
    if (error == hil::Error::Ok) report(method);
  }
  std::free(copy);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  hil::set_log_sink([](const char* text, size_t length) { std::fwrite(text, 1, length, stderr); });
  for (int i = 1; i < count; ++i) {
    if (run_file(words[i]) != 0) {
      std::fprintf(stderr, "cannot read or load %s\n", words[i]);
      return 1;
    }
  }
  return 0;
}
