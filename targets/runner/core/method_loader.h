// Decodes an execution plan into a Method. Everything is counted first, so that the one check
// of the method allocator knows the whole need; then it is decoded and checked.
#pragma once

#include "core/method.h"
#include "core/schema.h"

namespace hil {

class MethodLoader {
 public:
  MethodLoader(const Program& program, const executorch_flatbuffer::ExecutionPlan& plan,
               Arena& memory, Method& method)
      : program_(program), plan_(plan), memory_(memory), method_(method) {}

  Error load();

 private:
  using Indices = flatbuffers::Vector<int32_t>;

  struct Counts {
    size_t values = 0;
    size_t instructions = 0;
    size_t delegates = 0;
    size_t specs = 0;
    uint64_t pointers = 0;  // list items, arguments, inputs, outputs
  };

  Error count(Counts* counts) const;
  Error count_instruction(const executorch_flatbuffer::Instruction& source, Counts* counts) const;
  Error check_planned_buffers() const;
  bool place(Arena& arena, const Counts& counts, MethodUsage* usage);
  Error take_memory(const Counts& counts);
  Error too_small(uint64_t needed) const;

  Error decode_values();
  Error decode_value(const executorch_flatbuffer::EValue& source, Value* out);
  Error decode_lists();
  Error decode_list(const executorch_flatbuffer::EValue& source, Value* out);
  Error decode_io();
  Error give_storage(Span<Value*> values);
  Error decode_delegates();
  Error decode_delegate(const executorch_flatbuffer::BackendDelegate& source, Delegate* out);
  Error report_missing_operators() const;
  Error resolve(uint64_t op_index, const KernelEntry** kernel, char* name, size_t capacity) const;
  Error decode_instructions();
  Error decode_instruction(const executorch_flatbuffer::Instruction& source, size_t chain_start,
                           size_t chain_length, Instruction* out);

  Error value_at(int64_t index, Value** out) const;
  /// `count` pointer slots of the pool that place() reserved.
  Span<Value*> take_pointers(size_t count);
  Error take_values(const Indices* indices, Span<Value*>* out);

  const Program& program_;
  const executorch_flatbuffer::ExecutionPlan& plan_;
  Arena& memory_;
  Method& method_;
  Span<Span<uint8_t>> planned_;
  Span<Value*> pointers_;
  Span<CompileSpec> specs_;
  size_t pointers_taken_ = 0;
  size_t specs_taken_ = 0;
};

}  // namespace hil
