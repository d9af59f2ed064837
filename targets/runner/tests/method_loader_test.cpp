// Decoding an execution plan: every index out of range once, and memory that is too small.
#include "core/method_loader.h"

#include <doctest/doctest.h>

#include <cstring>

#include "loaded_method.h"

namespace {

void check(build::PlanBuilder& plan, hil::Error error, const char* reason) {
  const LoadedMethod loaded(plan.file());
  CHECK(loaded.error == error);
  const std::string log = fake::take_log();
  CHECK_MESSAGE(fake::contains(log, reason), reason, " missing in ", log);
}

constexpr hil::Error kInvalid = hil::Error::InvalidProgram;

}  // namespace

TEST_CASE("all missing operators are named, used ones only") {
  build::PlanBuilder plan;
  const int32_t value = plan.integer(0);
  plan.op("aten::unused", "out");
  const int32_t exp = plan.op("aten::exp", "out");
  const int32_t neg = plan.op("aten::neg", "");
  plan.call(exp, {value});
  plan.call(neg, {value});
  plan.call(exp, {value});
  const LoadedMethod loaded(plan.file());
  CHECK(loaded.error == hil::Error::OperatorMissing);
  const std::string log = fake::take_log();
  CHECK(fake::contains(log, "kernel 'aten::exp.out' not found."));
  CHECK(fake::contains(log, "Missing operator: [1] aten::exp.out"));
  CHECK(fake::contains(log, "kernel 'aten::neg' not found."));
  CHECK(fake::contains(log, "There are 3 instructions don't have corresponding operator"));
  CHECK_FALSE(fake::contains(log, "unused"));
}

TEST_CASE("a pool that is too small names need and supply; the need is enough") {
  const build::Bytes file = build::copy_program();
  const LoadedMethod small(file, 16);
  CHECK(small.error == hil::Error::MemoryAllocationFailed);
  const std::string log = fake::take_log();
  const size_t at = log.find("method allocator too small: ");
  REQUIRE(at != std::string::npos);
  CHECK(
      fake::contains(log, "bytes needed, 16 available; build with a larger HIL_METHOD_POOL_BYTES"));
  const auto needed = static_cast<size_t>(std::stoul(log.substr(at + 28)));
  CHECK(LoadedMethod(file, needed).error == hil::Error::Ok);
  CHECK(LoadedMethod(file, needed - 1).error == hil::Error::MemoryAllocationFailed);
}

TEST_CASE("planned buffers") {
  build::PlanBuilder negative, huge;
  negative.planned = {0, -1};
  check(negative, kInvalid, "a planned buffer of negative size");
  huge.planned = {0, INT64_MAX};
  check(huge, hil::Error::MemoryAllocationFailed, "method allocator too small");
}

TEST_CASE("usage adds up to what the arena gave") {
  const LoadedMethod loaded(build::copy_program());
  REQUIRE(loaded.error == hil::Error::Ok);
  const hil::MethodUsage& usage = loaded.method.usage();
  CHECK(usage.planned == 64);
  CHECK(usage.planned + usage.loaded + usage.input + usage.executor == loaded.arena.used());
}

TEST_CASE("inputs and outputs without a planned place get one") {
  build::PlanBuilder plan;
  plan.inputs = {plan.tensor({})};
  plan.outputs = {plan.tensor({})};
  plan.call(plan.op("test::copy", "out"), {0, 1, 1});
  LoadedMethod loaded(plan.file());
  REQUIRE(loaded.error == hil::Error::Ok);
  CHECK(loaded.method.usage().input >= 8);
  REQUIRE(loaded.set(0, {1, 2, 3, 4}) == hil::Error::Ok);
  REQUIRE(loaded.method.execute() == hil::Error::Ok);
  CHECK(loaded.output(0) == build::Bytes{1, 2, 3, 4});
}

TEST_CASE("all memory of a method begins as zeros") {
  build::PlanBuilder plan;
  build::TensorInfo planned, free;
  planned.offset = 32;
  plan.inputs = {plan.tensor(free), plan.tensor(planned)};
  plan.outputs = {plan.tensor(planned), plan.tensor(free)};
  LoadedMethod loaded(plan.file());
  REQUIRE(loaded.error == hil::Error::Ok);
  const build::Bytes zeros(4, 0);
  for (size_t i = 0; i < 2; ++i) {
    const hil::Tensor& input = loaded.method.input(i).tensor;
    CHECK(build::Bytes(input.data, input.data + input.nbytes) == zeros);
    CHECK(loaded.output(i) == zeros);
  }
}

TEST_CASE("an unplanned input that does not fit") {
  build::PlanBuilder plan;
  build::TensorInfo info;
  info.sizes = {1 << 20};
  plan.inputs = {plan.tensor(info)};
  check(plan, hil::Error::MemoryAllocationFailed, "method allocator too small");
}

TEST_CASE("indices out of range") {
  {
    build::PlanBuilder plan;
    plan.inputs = {3};
    check(plan, kInvalid, "value index out of range");
  }
  {
    build::PlanBuilder plan;
    plan.outputs = {-1};
    check(plan, kInvalid, "value index out of range");
  }
  for (const int32_t op : {-1, 1}) {
    build::PlanBuilder plan;
    plan.op("test::copy", "out");
    plan.call(op, {});
    check(plan, kInvalid, "operator index out of range");
  }
  {
    build::PlanBuilder plan;
    plan.call(plan.op("test::copy", "out"), {0});
    check(plan, kInvalid, "value index out of range");
  }
  for (const int32_t target : {-1, 2}) {
    build::PlanBuilder plan;
    plan.jump_false(plan.boolean(true), target);
    check(plan, kInvalid, "jump target out of range");
  }
  {
    build::PlanBuilder plan;
    plan.move(0, 0);
    check(plan, kInvalid, "value index out of range");
  }
  {
    build::PlanBuilder plan;
    plan.free_value(0);
    check(plan, kInvalid, "value index out of range");
  }
  {
    build::PlanBuilder plan;
    plan.delegate_call(0, {});
    check(plan, kInvalid, "delegate index out of range");
  }
}

TEST_CASE("operator names that are empty or too long") {
  build::PlanBuilder empty, too_long;
  empty.op("", "out");
  check(empty, kInvalid, "operator name empty or too long");
  too_long.op(std::string(200, 'x').c_str(), "");
  check(too_long, kInvalid, "operator name empty or too long");
}

TEST_CASE("lists refer to values of their type") {
  build::PlanBuilder good;
  const int32_t none = good.none();
  build::TensorInfo info;
  info.offset = 0;
  const int32_t tensor = good.tensor(info);
  good.int_list({good.integer(1)});
  good.tensor_list({tensor});
  good.optional_tensor_list({tensor, none, -1});
  good.string("text");
  check(good, hil::Error::Ok, "");

  build::PlanBuilder wrong, outside, optional;
  wrong.int_list({wrong.boolean(true)});
  check(wrong, kInvalid, "a list item of the wrong type");
  outside.int_list({int64_t{1} << 32});
  check(outside, kInvalid, "value index out of range");
  optional.optional_tensor_list({-2});
  check(optional, kInvalid, "value index out of range");
}

namespace {

/// Moves the vector in field `field` of `table` on by half an eight-byte element.
void shift_vector(const void* table, flatbuffers::voffset_t field) {
  auto* start = const_cast<flatbuffers::Table*>(static_cast<const flatbuffers::Table*>(table));
  flatbuffers::uoffset_t offset;
  std::memcpy(&offset, start->GetAddressOf(field), sizeof(offset));
  offset += 4;
  std::memcpy(start->GetAddressOf(field), &offset, sizeof(offset));
}

const build::fb::ExecutionPlan& plan_of(const build::Bytes& file) {
  return *build::fb::GetProgram(file.data())->execution_plan()->Get(0);
}

void check_file(const build::Bytes& file, hil::Error error, const char* reason) {
  const LoadedMethod loaded(file);
  CHECK(loaded.error == error);
  const std::string log = fake::take_log();
  CHECK_MESSAGE(fake::contains(log, reason), reason, " missing in ", log);
}

/// A program of one plan that the usual builder would not make.
build::Bytes finish(flatbuffers::FlatBufferBuilder& fbb,
                    flatbuffers::Offset<build::fb::ExecutionPlan> plan) {
  std::vector<flatbuffers::Offset<build::fb::ExecutionPlan>> plans = {plan};
  fbb.Finish(build::fb::CreateProgramDirect(fbb, 0, &plans), "ET12");
  return build::Bytes(fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize());
}

}  // namespace

TEST_CASE("vectors of eight-byte items that lie askew, which the verifier lets pass") {
  build::PlanBuilder plan;
  plan.integer(0);
  plan.int_list({0});
  build::TensorInfo info;
  info.offset = 0;
  info.constant = plan.initial_state({1, 2, 3, 4});
  plan.tensor(info);
  const build::Bytes good = plan.file();
  check_file(good, hil::Error::Ok, "");

  build::Bytes list = good, sizes = good, offsets = good;
  shift_vector(plan_of(list).values()->Get(1)->val(), build::fb::IntList::VT_ITEMS);
  check_file(list, kInvalid, "a list is not aligned to its items");
  shift_vector(&plan_of(sizes), build::fb::ExecutionPlan::VT_NON_CONST_BUFFER_SIZES);
  check_file(sizes, kInvalid, "the planned buffer sizes are not aligned");
  shift_vector(build::fb::GetProgram(offsets.data())->mutable_data_segments()->Get(0),
               build::fb::SubsegmentOffsets::VT_OFFSETS);
  check_file(offsets, kInvalid, "data offsets are not aligned");
}

TEST_CASE("unions that are empty or of an unknown kind") {
  namespace fb = build::fb;
  const auto with_value = [](fb::KernelTypes type) {
    flatbuffers::FlatBufferBuilder fbb;
    const auto content = type == fb::KernelTypes_NONE ? 0 : fb::CreateInt(fbb, 1).Union();
    std::vector<flatbuffers::Offset<fb::EValue>> values = {fb::CreateEValue(fbb, type, content)};
    return finish(fbb, fb::CreateExecutionPlanDirect(fbb, "forward", 0, &values));
  };
  check_file(with_value(fb::KernelTypes_NONE), kInvalid, "a value without content");
  check_file(with_value(static_cast<fb::KernelTypes>(99)), kInvalid, "a value of unknown type");

  const auto with_instruction = [](fb::InstructionArguments type) {
    flatbuffers::FlatBufferBuilder fbb;
    const auto content = type == fb::InstructionArguments_NONE ? 0
                                                               : fb::CreateFreeCall(fbb, 0).Union();
    std::vector<flatbuffers::Offset<fb::Instruction>> list = {
        fb::CreateInstruction(fbb, type, content)};
    std::vector<flatbuffers::Offset<fb::Chain>> chains = {
        fb::CreateChainDirect(fbb, nullptr, nullptr, &list)};
    return finish(
        fbb, fb::CreateExecutionPlanDirect(fbb, "forward", 0, nullptr, nullptr, nullptr, &chains));
  };
  check_file(with_instruction(fb::InstructionArguments_NONE), kInvalid,
             "an instruction without arguments");
  check_file(with_instruction(static_cast<fb::InstructionArguments>(99)), kInvalid,
             "an instruction of unknown kind");
}

TEST_CASE("delegates without name or data, and buffers on another device") {
  namespace fb = build::fb;
  const auto with_delegate = [](const char* id, bool has_data, fb::DataLocation location) {
    flatbuffers::FlatBufferBuilder fbb;
    const auto data = has_data ? fb::CreateBackendDelegateDataReference(fbb, location, 5)
                               : flatbuffers::Offset<fb::BackendDelegateDataReference>();
    std::vector<flatbuffers::Offset<fb::BackendDelegate>> delegates = {
        fb::CreateBackendDelegateDirect(fbb, id, data)};
    return finish(fbb, fb::CreateExecutionPlanDirect(fbb, "forward", 0, nullptr, nullptr, nullptr,
                                                     nullptr, nullptr, &delegates));
  };
  check_file(with_delegate(nullptr, true, fb::DataLocation_INLINE), kInvalid,
             "a delegate without name or data");
  check_file(with_delegate("TestBackend", false, fb::DataLocation_INLINE), kInvalid,
             "a delegate without name or data");
  check_file(with_delegate("TestBackend", true, fb::DataLocation_INLINE), kInvalid,
             "delegate data index out of range");
  check_file(with_delegate("TestBackend", true, fb::DataLocation_SEGMENT), kInvalid,
             "data segment index out of range");

  flatbuffers::FlatBufferBuilder fbb;
  std::vector<flatbuffers::Offset<fb::NonConstBufferDevice>> devices = {
      fb::CreateNonConstBufferDevice(fbb, 1, fb::DeviceType_CUDA)};
  check_file(
      finish(fbb, fb::CreateExecutionPlanDirect(fbb, "forward", 0, nullptr, nullptr, nullptr,
                                                nullptr, nullptr, nullptr, nullptr, &devices)),
      hil::Error::NotSupported, "planned buffers on another device");
}

TEST_CASE("a backend that is not in this build is named") {
  build::PlanBuilder plan;
  plan.delegate("VulkanBackend", {1});
  check(plan, hil::Error::NotFound, "Backend VulkanBackend is not registered.");
}

TEST_CASE("a method can be loaded once, and only when it exists") {
  LoadedMethod loaded(build::copy_program());
  CHECK(loaded.method.init(loaded.program, "forward", loaded.arena, loaded.temp, {}) ==
        hil::Error::AlreadyLoaded);
  hil::Method other;
  CHECK(other.init(loaded.program, "backward", loaded.arena, loaded.temp, {}) ==
        hil::Error::InvalidArgument);
  CHECK(fake::contains(fake::take_log(), "the program has no method 'backward'"));
}
