// libFuzzer: any bytes as a .pte or .bpte through load, method init and a bounded execution.
//   fuzz_program -max_total_time=60 WORK_CORPUS SEED_CORPUS
// The seeds are real exported programs. The pool is large enough for them, so that execution is
// reached, and the instruction budget small, so that one input stays cheap.
#include <cstdlib>
#include <cstring>

#include "core/bundle.h"
#include "core/method.h"

namespace {

constexpr size_t kMethodPool = 256 * 1024;
constexpr uint64_t kInstructionBudget = 40;

void execute(hil::Span<const uint8_t> bytes, const hil::Bundle* bundle) {
  alignas(32) static uint8_t method_pool[kMethodPool];
  alignas(32) static uint8_t temp_pool[4096];
  hil::Program program;
  if (program.load(bytes) != hil::Error::Ok) return;
  const char* name = program.method_name(0);
  if (name == nullptr) return;
  hil::Arena memory({method_pool, sizeof(method_pool)});
  hil::Arena temp({temp_pool, sizeof(temp_pool)});
  hil::MethodOptions options;
  options.kernels = hil::kernel_table();
  options.max_instructions = kInstructionBudget;
  hil::Method method;
  if (method.init(program, name, memory, temp, options) != hil::Error::Ok) return;
  if (bundle != nullptr && bundle->set_inputs(name, 0, method) != hil::Error::Ok) return;
  if (method.execute() != hil::Error::Ok) return;
  for (size_t i = 0; i < method.output_count(); ++i) {
    hil::Span<const uint8_t> out;
    if (method.output_bytes(i, &out) != hil::Error::Ok) return;
  }
  bool equal = false;
  if (bundle == nullptr) return;
  // Any answer is right as long as there is one.
  static_cast<void>(bundle->compare_outputs(name, 0, method, 0.01, 0.01, &equal));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Aligned and exactly as long as the input, so that every byte beyond is a finding.
  void* copy = nullptr;
  if (::posix_memalign(&copy, 32, size == 0 ? 1 : size) != 0) return 0;
  std::memcpy(copy, data, size);
  const hil::Span<const uint8_t> bytes(static_cast<const uint8_t*>(copy), size);
  hil::Bundle bundle;
  if (!hil::is_bundle(bytes)) {
    execute(bytes, nullptr);
  } else if (bundle.load(bytes) == hil::Error::Ok) {
    execute(bundle.program(), &bundle);
  }
  std::free(copy);
  return 0;
}
