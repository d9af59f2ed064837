// Builds .pte and .bpte files for tests, valid unless a test asks otherwise.
#pragma once

#include <string>
#include <vector>

#include "bytes.h"
#include "core/schema.h"
//
#include <bundled_program_schema_generated.h>

namespace build {

namespace fb = executorch_flatbuffer;

struct TensorInfo {
  fb::ScalarType type = fb::ScalarType_CHAR;
  std::vector<int32_t> sizes = {4};
  std::vector<uint8_t> dim_order = {0};
  uint32_t constant = 0;  // data_buffer_idx
  int64_t offset = -1;    // planned place, none when negative
  uint32_t memory_id = 1;
  int32_t storage_offset = 0;
  fb::TensorShapeDynamism dynamism = fb::TensorShapeDynamism_STATIC;
  bool external = false;
};

/// Collects one plan; `file()` serializes it. Every add function returns the index of what it
/// added.
class PlanBuilder {
 public:
  int32_t tensor(const TensorInfo& info);
  int32_t integer(int64_t value);
  int32_t boolean(bool value);
  int32_t number(double value);
  int32_t none();
  int32_t string(const char* text);
  int32_t int_list(const std::vector<int64_t>& items);
  int32_t tensor_list(const std::vector<int32_t>& items);
  int32_t optional_tensor_list(const std::vector<int32_t>& items);

  int32_t op(const char* name, const char* overload);
  void call(int32_t op, const std::vector<int32_t>& args);
  void move(int32_t from, int32_t to);
  void jump_false(int32_t condition, int32_t target);
  void free_value(int32_t value);
  void delegate_call(int32_t delegate, const std::vector<int32_t>& args);
  /// What follows belongs to a further chain.
  void chain();
  int32_t delegate(const char* id, const Bytes& data);

  /// Constant data, in the segment; its index.
  uint32_t constant(const Bytes& data);
  /// Initial state of a mutable tensor, in a second segment.
  uint32_t initial_state(const Bytes& data);

  std::vector<int32_t> inputs, outputs;
  std::vector<int64_t> planned = {0, 64};
  uint32_t version = 0;
  bool inline_constants = false;
  std::string identifier = "ET12";

  /// The whole file: FlatBuffer with extended header, then the segments.
  Bytes file();

 private:
  void instruction(fb::InstructionArguments type, flatbuffers::Offset<void> arguments);
  int32_t value(fb::KernelTypes type, flatbuffers::Offset<void> content);
  Bytes with_segments(const Bytes& flatbuffer, const Bytes& segments) const;

  flatbuffers::FlatBufferBuilder fbb_;
  std::vector<flatbuffers::Offset<fb::EValue>> values_;
  std::vector<flatbuffers::Offset<fb::Operator>> operators_;
  std::vector<flatbuffers::Offset<fb::Instruction>> instructions_;  // of the last chain
  std::vector<flatbuffers::Offset<fb::Chain>> chains_;
  std::vector<flatbuffers::Offset<fb::BackendDelegate>> delegates_;
  std::vector<Bytes> delegate_data_;
  std::vector<Bytes> constants_ = {{}};
  std::vector<Bytes> states_ = {{}};
};

/// input(4 x int8) -> copy -> output, both planned.
Bytes copy_program();

struct BundledTensor {
  std::vector<int32_t> sizes;
  std::vector<uint8_t> dim_order;
  Bytes data;
  fb::ScalarType type = fb::ScalarType_CHAR;
};
struct BundledCase {
  std::vector<BundledTensor> inputs, outputs;
};
Bytes bundle(const Bytes& program, const std::vector<BundledCase>& cases,
             const char* method = "forward", const char* identifier = "BP08");

}  // namespace build
