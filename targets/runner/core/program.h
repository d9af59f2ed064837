// A .pte in memory: identified, verified, and read only through checked accessors.
#pragma once

#include "core/error.h"
#include "core/span.h"

namespace executorch_flatbuffer {
struct BackendDelegateDataReference;
struct ExecutionPlan;
struct Program;
struct SubsegmentOffsets;
}  // namespace executorch_flatbuffer

namespace hil {

class Program {
 public:
  /// Alignment the bytes must have: the largest force_align in the schema.
  static constexpr size_t kAlignment = 16;

  /// Verifies `bytes`, which must outlive the Program. Logs what is wrong with them.
  Error load(Span<const uint8_t> bytes);

  size_t method_count() const;
  /// Null when there is no such method.
  const char* method_name(size_t index) const;
  const executorch_flatbuffer::ExecutionPlan* method(const char* name) const;

  /// `nbytes` of constant `index` (Tensor.data_buffer_idx), from a segment or inline.
  Error constant(uint32_t index, uint64_t nbytes, Span<const uint8_t>* out) const;
  /// `nbytes` of the initial state of a mutable tensor.
  Error initial_state(uint64_t offsets_index, uint32_t index, uint64_t nbytes,
                      Span<const uint8_t>* out) const;
  /// What a delegate was compiled to.
  Error delegate_data(const executorch_flatbuffer::BackendDelegateDataReference& reference,
                      Span<const uint8_t>* out) const;
  /// The blob a delegate stored under `key`.
  Error named_data(const char* key, Span<const uint8_t>* out) const;

 private:
  Error read_header(Span<const uint8_t> bytes);
  Error segment(uint64_t index, Span<const uint8_t>* out) const;
  Error from_offsets(const executorch_flatbuffer::SubsegmentOffsets& offsets, uint32_t index,
                     uint64_t nbytes, Span<const uint8_t>* out) const;

  const executorch_flatbuffer::Program* root_ = nullptr;
  Span<const uint8_t> flatbuffer_;
  Span<const uint8_t> segments_;
};

}  // namespace hil
