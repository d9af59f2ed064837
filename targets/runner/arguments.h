// The runner's command line, that of ExecuTorch's Arm runner in its semihosting mode
// (executorch/backends/arm/test/runner_utils.py, run_corstone):
//   executor_runner -m program.pte -i i0.bin -i i1.bin -o out
// The first -o names the first set's outputs; inputs before it belong to that set. Every
// further -o starts another set. -p measures each operator.
#pragma once

#include <cstddef>

namespace hil {

struct InputSet {
  size_t first_input = 0;  // index into Arguments::inputs
  size_t input_count = 0;
  const char* output_base = nullptr;
};

struct Arguments {
  static constexpr size_t kMaxInputs = 128;
  static constexpr size_t kMaxSets = 64;

  const char* model = nullptr;
  bool profile = false;
  const char* inputs[kMaxInputs] = {};
  size_t input_count = 0;
  InputSet sets[kMaxSets] = {};
  size_t set_count = 0;
};

/// False, after logging why, when the command line makes no sense. argv[0] is not looked at.
bool parse_arguments(int argc, const char* const* argv, Arguments* out);

}  // namespace hil
