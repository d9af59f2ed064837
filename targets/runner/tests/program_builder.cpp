#include "program_builder.h"

#include <cstdlib>
#include <cstring>

namespace build {

namespace {

constexpr size_t kHeader = 32;
constexpr size_t kSegmentAlignment = 128;

void append_aligned(Bytes* to, const Bytes& data, size_t alignment) {
  to->resize((to->size() + alignment - 1) / alignment * alignment);
  to->insert(to->end(), data.begin(), data.end());
}

void put_u64(Bytes* bytes, size_t at, uint64_t value) {
  for (size_t i = 0; i < 8; ++i) (*bytes)[at + i] = static_cast<uint8_t>(value >> (8 * i));
}

/// The data back to back at 16-byte steps; where each starts in `offsets`.
Bytes concatenate(const std::vector<Bytes>& parts, std::vector<uint64_t>* offsets) {
  Bytes all;
  for (const Bytes& part : parts) {
    append_aligned(&all, {}, 16);
    offsets->push_back(all.size());
    append_aligned(&all, part, 16);
  }
  return all;
}

}  // namespace

int32_t PlanBuilder::value(fb::KernelTypes type, flatbuffers::Offset<void> content) {
  values_.push_back(fb::CreateEValue(fbb_, type, content));
  return static_cast<int32_t>(values_.size() - 1);
}

int32_t PlanBuilder::tensor(const TensorInfo& info) {
  flatbuffers::Offset<fb::AllocationDetails> place;
  if (info.offset >= 0) {
    const auto offset = static_cast<uint64_t>(info.offset);
    place = fb::CreateAllocationDetails(fbb_, info.memory_id, static_cast<uint32_t>(offset),
                                        static_cast<uint32_t>(offset >> 32));
  }
  flatbuffers::Offset<fb::ExtraTensorInfo> extra;
  if (info.external) {
    extra = fb::CreateExtraTensorInfo(fbb_, 0, fbb_.CreateString("weight"),
                                      fb::TensorDataLocation_EXTERNAL);
  }
  const auto sizes = fbb_.CreateVector(info.sizes);
  const auto order = fbb_.CreateVector(info.dim_order);
  return value(fb::KernelTypes_Tensor,
               fb::CreateTensor(fbb_, info.type, info.storage_offset, sizes, order, false,
                                info.constant, place, 0, info.dynamism, extra)
                   .Union());
}

int32_t PlanBuilder::integer(int64_t v) {
  return value(fb::KernelTypes_Int, fb::CreateInt(fbb_, v).Union());
}
int32_t PlanBuilder::boolean(bool v) {
  return value(fb::KernelTypes_Bool, fb::CreateBool(fbb_, v).Union());
}
int32_t PlanBuilder::number(double v) {
  return value(fb::KernelTypes_Double, fb::CreateDouble(fbb_, v).Union());
}
int32_t PlanBuilder::none() { return value(fb::KernelTypes_Null, fb::CreateNull(fbb_).Union()); }
int32_t PlanBuilder::string(const char* text) {
  return value(fb::KernelTypes_String, fb::CreateStringDirect(fbb_, text).Union());
}
int32_t PlanBuilder::int_list(const std::vector<int64_t>& items) {
  return value(fb::KernelTypes_IntList, fb::CreateIntListDirect(fbb_, &items).Union());
}
int32_t PlanBuilder::tensor_list(const std::vector<int32_t>& items) {
  return value(fb::KernelTypes_TensorList, fb::CreateTensorListDirect(fbb_, &items).Union());
}
int32_t PlanBuilder::optional_tensor_list(const std::vector<int32_t>& items) {
  return value(fb::KernelTypes_OptionalTensorList,
               fb::CreateOptionalTensorListDirect(fbb_, &items).Union());
}

int32_t PlanBuilder::op(const char* name, const char* overload) {
  operators_.push_back(fb::CreateOperatorDirect(fbb_, name, overload));
  return static_cast<int32_t>(operators_.size() - 1);
}

void PlanBuilder::chain() {
  chains_.push_back(fb::CreateChainDirect(fbb_, nullptr, nullptr, &instructions_));
  instructions_.clear();
}

void PlanBuilder::instruction(fb::InstructionArguments type, flatbuffers::Offset<void> arguments) {
  instructions_.push_back(fb::CreateInstruction(fbb_, type, arguments));
}
void PlanBuilder::call(int32_t op, const std::vector<int32_t>& args) {
  instruction(fb::InstructionArguments_KernelCall,
              fb::CreateKernelCallDirect(fbb_, op, &args).Union());
}
void PlanBuilder::move(int32_t from, int32_t to) {
  instruction(fb::InstructionArguments_MoveCall, fb::CreateMoveCall(fbb_, from, to).Union());
}
void PlanBuilder::jump_false(int32_t condition, int32_t target) {
  instruction(fb::InstructionArguments_JumpFalseCall,
              fb::CreateJumpFalseCall(fbb_, condition, target).Union());
}
void PlanBuilder::free_value(int32_t v) {
  instruction(fb::InstructionArguments_FreeCall, fb::CreateFreeCall(fbb_, v).Union());
}
void PlanBuilder::delegate_call(int32_t delegate, const std::vector<int32_t>& args) {
  instruction(fb::InstructionArguments_DelegateCall,
              fb::CreateDelegateCallDirect(fbb_, delegate, &args).Union());
}

int32_t PlanBuilder::delegate(const char* id, const Bytes& data) {
  const auto index = static_cast<uint32_t>(delegates_.size());
  const Bytes spec_value = {1, 2};
  std::vector<flatbuffers::Offset<fb::CompileSpec>> specs = {
      fb::CreateCompileSpecDirect(fbb_, "key", &spec_value)};
  delegates_.push_back(fb::CreateBackendDelegateDirect(
      fbb_, id, fb::CreateBackendDelegateDataReference(fbb_, fb::DataLocation_INLINE, index),
      &specs));
  delegate_data_.push_back(data);
  return static_cast<int32_t>(index);
}

uint32_t PlanBuilder::constant(const Bytes& data) {
  constants_.push_back(data);
  return static_cast<uint32_t>(constants_.size() - 1);
}
uint32_t PlanBuilder::initial_state(const Bytes& data) {
  states_.push_back(data);
  return static_cast<uint32_t>(states_.size() - 1);
}

Bytes PlanBuilder::file() {
  chain();
  std::vector<flatbuffers::Offset<fb::ExecutionPlan>> plans = {
      fb::CreateExecutionPlanDirect(fbb_, "forward", 0, &values_, &inputs, &outputs, &chains_,
                                    &operators_, &delegates_, &planned)};
  std::vector<flatbuffers::Offset<fb::BackendDelegateInlineData>> blobs;
  for (const Bytes& data : delegate_data_) {
    fbb_.ForceVectorAlignment(data.size(), 1, 16);
    blobs.push_back(fb::CreateBackendDelegateInlineData(fbb_, fbb_.CreateVector(data)));
  }
  std::vector<uint64_t> constant_offsets, state_offsets;
  Bytes segments = concatenate(constants_, &constant_offsets);
  const size_t constant_size = segments.size();
  append_aligned(&segments, {}, kSegmentAlignment);
  const size_t state_start = segments.size();
  const Bytes state = concatenate(states_, &state_offsets);
  segments.insert(segments.end(), state.begin(), state.end());

  std::vector<flatbuffers::Offset<fb::DataSegment>> table = {
      fb::CreateDataSegment(fbb_, 0, constant_size),
      fb::CreateDataSegment(fbb_, state_start, state.size())};
  std::vector<flatbuffers::Offset<fb::Buffer>> buffers;
  if (inline_constants) {
    for (const Bytes& data : constants_) {
      fbb_.ForceVectorAlignment(data.size(), 1, 16);
      buffers.push_back(fb::CreateBuffer(fbb_, fbb_.CreateVector(data)));
    }
    constant_offsets.clear();
  }
  const auto constant_segment = fb::CreateSubsegmentOffsetsDirect(fbb_, 0, &constant_offsets);
  std::vector<flatbuffers::Offset<fb::SubsegmentOffsets>> mutable_segments = {
      fb::CreateSubsegmentOffsetsDirect(fbb_, 1, &state_offsets)};
  std::vector<flatbuffers::Offset<fb::NamedData>> named = {
      fb::CreateNamedDataDirect(fbb_, "states", 1)};
  fbb_.Finish(fb::CreateProgramDirect(fbb_, version, &plans, &buffers, &blobs, &table,
                                      constant_segment, &mutable_segments, &named),
              identifier.c_str());
  return with_segments(Bytes(fbb_.GetBufferPointer(), fbb_.GetBufferPointer() + fbb_.GetSize()),
                       segments);
}

/// What ExecuTorch's serializer does: the header goes between identifier and root table.
Bytes PlanBuilder::with_segments(const Bytes& flatbuffer, const Bytes& segments) const {
  Bytes file(flatbuffer.begin(), flatbuffer.begin() + 8);
  uint32_t root;
  std::memcpy(&root, file.data(), 4);
  root += kHeader;
  std::memcpy(file.data(), &root, 4);
  file.resize(8 + kHeader);
  std::memcpy(file.data() + 8, "eh00\x20\0\0\0", 8);
  file.insert(file.end(), flatbuffer.begin() + 8, flatbuffer.end());
  const size_t program_size = file.size();
  append_aligned(&file, segments, kSegmentAlignment);
  put_u64(&file, 16, program_size);
  put_u64(&file, 24, file.size() - segments.size());
  put_u64(&file, 32, segments.size());
  return file;
}

Bytes copy_program() {
  PlanBuilder plan;
  TensorInfo in, out;
  in.offset = 0;
  out.offset = 16;
  plan.inputs = {plan.tensor(in)};
  plan.outputs = {plan.tensor(out)};
  plan.call(plan.op("test::copy", "out"), {0, 1, 1});
  return plan.file();
}

namespace {

namespace bp = bundled_program_flatbuffer;

std::vector<flatbuffers::Offset<bp::Value>> bundled_values(
    flatbuffers::FlatBufferBuilder& fbb, const std::vector<BundledTensor>& tensors) {
  std::vector<flatbuffers::Offset<bp::Value>> values;
  for (const BundledTensor& tensor : tensors) {
    fbb.ForceVectorAlignment(tensor.data.size(), 1, 16);
    const auto data = fbb.CreateVector(tensor.data);
    const auto sizes = fbb.CreateVector(tensor.sizes);
    const auto order = fbb.CreateVector(tensor.dim_order);
    values.push_back(
        bp::CreateValue(fbb, bp::ValueUnion_Tensor,
                        bp::CreateTensor(fbb, tensor.type, sizes, data, order).Union()));
  }
  return values;
}

}  // namespace

Bytes bundle(const Bytes& program, const std::vector<BundledCase>& cases, const char* method,
             const char* identifier) {
  flatbuffers::FlatBufferBuilder fbb;
  std::vector<flatbuffers::Offset<bp::BundledMethodTestCase>> tests;
  for (const BundledCase& each : cases) {
    const auto inputs = bundled_values(fbb, each.inputs);
    const auto outputs = bundled_values(fbb, each.outputs);
    tests.push_back(bp::CreateBundledMethodTestCaseDirect(fbb, &inputs, &outputs));
  }
  std::vector<flatbuffers::Offset<bp::BundledMethodTestSuite>> suites = {
      bp::CreateBundledMethodTestSuiteDirect(fbb, method, &tests)};
  fbb.ForceVectorAlignment(program.size(), 1, 32);
  const auto inner = fbb.CreateVector(program);
  fbb.Finish(bp::CreateBundledProgram(fbb, 0, fbb.CreateVector(suites), inner), identifier);
  return Bytes(fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize());
}

Aligned::Aligned(const Bytes& bytes) : size_(bytes.size()) {
  void* memory = nullptr;
  if (::posix_memalign(&memory, 32, bytes.size() + (bytes.empty() ? 1 : 0)) != 0) std::abort();
  data_ = static_cast<uint8_t*>(memory);
  if (!bytes.empty()) std::memcpy(data_, bytes.data(), bytes.size());
}

Aligned::~Aligned() { std::free(data_); }

}  // namespace build
