// Executing: each kind of instruction, and what must stop an execution.
#include "core/method.h"

#include <doctest/doctest.h>

#include "loaded_method.h"

namespace {

build::TensorInfo at(int64_t offset) {
  build::TensorInfo info;
  info.offset = offset;
  return info;
}

void check_fails(build::PlanBuilder& plan, hil::Error error, const char* reason) {
  LoadedMethod loaded(plan.file());
  REQUIRE(loaded.error == hil::Error::Ok);
  CHECK(loaded.method.execute() == error);
  const std::string log = fake::take_log();
  CHECK_MESSAGE(fake::contains(log, reason), reason, " missing in ", log);
}

uint64_t counter = 0;
uint64_t tick() { return counter += 5; }

}  // namespace

TEST_CASE("inputs go through a kernel to outputs, any number of times") {
  LoadedMethod loaded(build::copy_program());
  REQUIRE(loaded.error == hil::Error::Ok);
  for (const build::Bytes& data : {build::Bytes{1, 2, 3, 4}, build::Bytes{9, 8, 7, 6}}) {
    REQUIRE(loaded.set(0, data) == hil::Error::Ok);
    REQUIRE(loaded.method.execute() == hil::Error::Ok);
    CHECK(loaded.output(0) == data);
  }
}

TEST_CASE("inputs of the wrong size or index") {
  LoadedMethod loaded(build::copy_program());
  CHECK(loaded.set(0, {1, 2, 3}) == hil::Error::InvalidArgument);
  CHECK(fake::contains(fake::take_log(), "input 0 has the wrong size: expected 4 bytes, got 3"));
  CHECK(loaded.set(1, {1}) == hil::Error::InvalidArgument);
  CHECK(fake::contains(fake::take_log(), "there is no input 1, the method takes 1"));
}

TEST_CASE("scalars in and out; constants and lists cannot be set") {
  build::PlanBuilder plan;
  const uint32_t data = plan.constant({1, 2, 3, 4});
  build::TensorInfo constant;
  constant.constant = data;
  plan.inputs = {plan.integer(0), plan.number(0), plan.boolean(false), plan.tensor(constant),
                 plan.none()};
  plan.outputs = plan.inputs;
  LoadedMethod loaded(plan.file());
  REQUIRE(loaded.error == hil::Error::Ok);
  CHECK(loaded.set(0, {7, 0, 0, 0, 0, 0, 0, 0}) == hil::Error::Ok);
  CHECK(loaded.set(2, {5}) == hil::Error::Ok);
  CHECK(loaded.method.output(0).as_int == 7);
  CHECK(loaded.output(2) == build::Bytes{1});
  CHECK(loaded.output(1).size() == 8);
  CHECK(loaded.set(3, {1, 2, 3, 4}) == hil::Error::InvalidType);
  CHECK(fake::contains(fake::take_log(), "input 3 cannot be set"));
  // Callers that write one file per argument write one for None, too.
  CHECK(loaded.set(4, {1}) == hil::Error::Ok);
  CHECK(fake::contains(fake::take_log(), "input 4 is None in the program"));
  CHECK(loaded.output(4).empty());
  CHECK(fake::contains(fake::take_log(), "output 4 is neither a tensor with data nor a scalar"));
}

TEST_CASE("a loop with JumpFalseCall and MoveCall ends when its condition turns") {
  // 0: increment the flag tensor; 1: go to 0 while the moved condition is false; 2: free.
  build::PlanBuilder plan;
  build::TensorInfo flag = at(0);
  flag.type = build::fb::ScalarType_BOOL;
  flag.sizes = {1};
  const int32_t tensor = plan.tensor(flag);
  const int32_t copy = plan.tensor(flag);
  plan.inputs = {tensor};
  plan.outputs = {tensor};
  plan.move(tensor, copy);
  const int32_t increment = plan.op("test::increment", "");
  plan.call(increment, {tensor});
  plan.jump_false(copy, 1);
  plan.free_value(copy);
  LoadedMethod loaded(plan.file());
  REQUIRE(loaded.error == hil::Error::Ok);
  REQUIRE(loaded.set(0, {255}) == hil::Error::Ok);
  REQUIRE(loaded.method.execute() == hil::Error::Ok);
  CHECK(loaded.output(0) == build::Bytes{1});  // 255 -> 0 (false, again) -> 1
}

TEST_CASE("an endless loop ends at the instruction budget") {
  build::PlanBuilder plan;
  plan.jump_false(plan.boolean(false), 0);
  hil::MethodOptions options;
  options.max_instructions = 1000;
  LoadedMethod loaded(plan.file(), 1 << 16, options);
  REQUIRE(loaded.error == hil::Error::Ok);
  CHECK(loaded.method.execute() == hil::Error::OutOfResources);
  CHECK(fake::contains(fake::take_log(), "no end after 1000 instructions"));
}

TEST_CASE("a budget is for as many instructions as it says") {
  for (const uint64_t budget : {1, 2, 3}) {
    build::PlanBuilder plan;
    const int32_t condition = plan.boolean(true);
    for (const int32_t next : {1, 2}) plan.jump_false(condition, next);
    hil::MethodOptions options;
    options.max_instructions = budget;
    LoadedMethod loaded(plan.file(), 1 << 16, options);
    REQUIRE(loaded.error == hil::Error::Ok);
    CHECK(loaded.method.execute() == (budget < 2 ? hil::Error::OutOfResources : hil::Error::Ok));
  }
}

TEST_CASE("a jump counts from the beginning of its chain") {
  // The second chain: 0: to 2 when false; 1: what would fail; 2: set the output.
  build::PlanBuilder plan;
  plan.inputs = {plan.tensor(at(0))};
  plan.outputs = {plan.tensor(at(16))};
  const int32_t copy = plan.op("test::copy", "out");
  for (int i = 0; i < 4; ++i) plan.move(0, 0);
  plan.chain();
  plan.jump_false(plan.boolean(false), 2);
  plan.move(plan.integer(1), plan.boolean(true));
  plan.call(copy, {0, 1, 1});
  hil::MethodOptions options;
  options.max_instructions = 100;  // a wrong jump may be one to itself
  LoadedMethod loaded(plan.file(), 1 << 16, options);
  REQUIRE(loaded.error == hil::Error::Ok);
  REQUIRE(loaded.set(0, {1, 2, 3, 4}) == hil::Error::Ok);
  REQUIRE(loaded.method.execute() == hil::Error::Ok);
  CHECK(loaded.output(0) == build::Bytes{1, 2, 3, 4});
}

TEST_CASE("what stops an execution is named with its instruction") {
  build::PlanBuilder wrong_type, bad_condition, bad_arguments, constant_output, unbound;
  wrong_type.move(wrong_type.integer(1), wrong_type.boolean(true));
  check_fails(wrong_type, hil::Error::InvalidType, "instruction 0 (MoveCall) failed: InvalidType");
  bad_condition.jump_false(bad_condition.integer(1), 0);
  check_fails(bad_condition, hil::Error::InvalidType, "the condition is neither a bool");
  bad_arguments.call(bad_arguments.op("test::copy", "out"), {bad_arguments.integer(1)});
  check_fails(bad_arguments, hil::Error::InvalidArgument,
              "instruction 0 (test::copy.out) failed: InvalidArgument (0x12)");
  build::TensorInfo constant;
  constant.constant = constant_output.constant({1, 2, 3, 4});
  const int32_t weight = constant_output.tensor(constant);
  constant_output.call(constant_output.op("test::copy", "out"),
                       {constant_output.tensor(at(0)), weight});
  check_fails(constant_output, hil::Error::InvalidProgram, "its output is a constant");
  const int32_t nowhere = unbound.tensor({});
  unbound.call(unbound.op("test::copy", "out"), {unbound.tensor(at(0)), nowhere});
  check_fails(unbound, hil::Error::InvalidState, "an argument has no data yet");
}

TEST_CASE("a view binds its output, and a view of a constant is a constant") {
  build::PlanBuilder plan;
  build::TensorInfo constant;
  constant.constant = plan.constant({1, 2, 3, 4});
  const int32_t weight = plan.tensor(constant);
  const int32_t shape = plan.int_list({});
  const int32_t alias = plan.tensor({});
  const int32_t op = plan.op("executorch_prim::et_view", "default");
  plan.call(op, {weight, shape, alias});
  plan.call(op, {weight, shape, alias});
  plan.call(plan.op("test::copy", "out"), {weight, alias});
  check_fails(plan, hil::Error::InvalidProgram, "instruction 2 (test::copy.out)");
}

TEST_CASE("a delegate is initialised with its data, executed and destroyed") {
  {
    build::PlanBuilder plan;
    plan.inputs = {plan.tensor(at(0))};
    plan.outputs = {plan.tensor(at(16))};
    plan.delegate_call(plan.delegate("TestBackend", {1, 2, 3}), {0, 1});
    LoadedMethod loaded(plan.file());
    REQUIRE(loaded.error == hil::Error::Ok);
    CHECK(fake::backend_calls().processed == build::Bytes{1, 2, 3});
    CHECK(fake::backend_calls().first_key == "key");
    REQUIRE(loaded.set(0, {5, 0, 0, 0}) == hil::Error::Ok);
    REQUIRE(loaded.method.execute() == hil::Error::Ok);
    CHECK(loaded.output(0)[0] == 105);
    CHECK(loaded.temp.used() == 0);
    CHECK(loaded.temp.high_water() == 100);
    CHECK(std::string(hil::instruction_name(loaded.method.instructions()[0])) == "TestBackend");
  }
  CHECK(fake::backend_calls().destroyed == 1);
}

TEST_CASE("with a clock, every instruction has its time") {
  hil::MethodOptions options;
  options.clock = tick;
  LoadedMethod loaded(build::copy_program(), 1 << 16, options);
  REQUIRE(loaded.error == hil::Error::Ok);
  REQUIRE(loaded.method.execute() == hil::Error::Ok);
  REQUIRE(loaded.method.instruction_ticks().size() == 1);
  CHECK(loaded.method.instruction_ticks()[0] == 5);
}

TEST_CASE("nothing works before a method is loaded") {
  hil::Method method;
  hil::Span<const uint8_t> out;
  CHECK(method.execute() == hil::Error::InvalidState);
  CHECK(method.set_input(0, {}) == hil::Error::InvalidState);
  CHECK(method.output_bytes(0, &out) == hil::Error::InvalidState);
}
