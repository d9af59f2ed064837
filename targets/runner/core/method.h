// One loaded method: values and instructions decoded once, then executed any number of times.
#pragma once

#include "core/arena.h"
#include "core/backend.h"
#include "core/kernel.h"
#include "core/program.h"

namespace hil {

struct MethodOptions {
  Span<const KernelEntry> kernels;
  Span<const BackendEntry> backends;
  /// Instructions one execution may take; 0 is no limit. Keeps a damaged program from looping.
  uint64_t max_instructions = 0;
  /// When set, the time each instruction took is kept.
  uint64_t (*clock)() = nullptr;
};

/// Bytes of the method allocator by purpose, named as ExecuTorch's runner reports them.
struct MethodUsage {
  uint64_t planned = 0;
  uint64_t loaded = 0;    // values, lists, instructions, delegates
  uint64_t input = 0;     // storage of inputs and outputs that the planner left out
  uint64_t executor = 0;  // instruction times
};

struct Delegate {
  Backend* backend = nullptr;
  const char* id = nullptr;
  void* handle = nullptr;
};

struct Instruction {
  enum class Kind : uint8_t { Kernel, Delegate, Move, JumpFalse, Free };
  Kind kind = Kind::Free;
  bool binds_output = false;  // the kernel points its output at its input's data
  uint32_t target = 0;        // JumpFalse
  const KernelEntry* kernel = nullptr;
  Delegate* delegate = nullptr;
  Span<Value*> args;  // Kernel, Delegate; Move: from, to; JumpFalse: condition; Free: value
};

/// A tensor with elements and no place for them: an input or a view that nothing bound yet.
inline bool lacks_data(const Value& value) {
  return value.tag == Tag::Tensor && value.tensor.data == nullptr && value.tensor.nbytes > 0;
}

/// The operator, the backend, or the kind of the instruction.
const char* instruction_name(const Instruction& instruction);

class Method {
 public:
  Method() = default;
  ~Method();
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;

  /// Takes everything the method will ever need from `memory`; logs what is wrong. Both arenas
  /// and the program's bytes must outlive the method.
  Error init(const Program& program, const char* name, Arena& memory, Arena& temp,
             const MethodOptions& options);

  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  const Value& input(size_t index) const { return *inputs_[index]; }
  const Value& output(size_t index) const { return *outputs_[index]; }

  /// Copies `bytes` (memory order; a scalar as its 8 or 1 bytes) into input `index`.
  Error set_input(size_t index, Span<const uint8_t> bytes);
  Error execute();
  /// Output `index` as bytes in memory order; empty with an error when it is no tensor or scalar.
  Error output_bytes(size_t index, Span<const uint8_t>* out) const;

  const MethodUsage& usage() const { return usage_; }
  Span<const Instruction> instructions() const {
    return Span<const Instruction>(instructions_.data(), instructions_.size());
  }
  /// Per instruction, of the last execution; empty without a clock.
  Span<const uint64_t> instruction_ticks() const {
    return Span<const uint64_t>(ticks_.data(), ticks_.size());
  }

 private:
  friend class MethodLoader;
  Error run(const Instruction& instruction, size_t* next);
  Error run_timed(size_t current, size_t* next);
  Error run_delegate(const Instruction& instruction);
  Error run_kernel(const Instruction& instruction);
  Error run_move(const Instruction& instruction);
  Error run_jump(const Instruction& instruction, size_t* next);

  Span<Value> values_;
  Span<Value*> inputs_;
  Span<Value*> outputs_;
  Span<Instruction> instructions_;
  Span<Delegate> delegates_;
  Span<uint64_t> ticks_;
  Arena* temp_ = nullptr;
  MethodOptions options_;
  MethodUsage usage_;
  bool ready_ = false;
  bool all_bound_ = false;  // every tensor had data once loaded: no need to look again
};

}  // namespace hil
