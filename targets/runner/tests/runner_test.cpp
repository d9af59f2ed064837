// The whole runner on a machine in memory: what it writes, prints and exits with.
#include "runner.h"

#include <doctest/doctest.h>

#include "fake_platform.h"
#include "program_builder.h"

namespace {

constexpr char kEnd[] = "Program complete, exiting.\n";

void prepare() {
  fake::reset();
  fake::machine().files["p.pte"] = build::copy_program();
  fake::machine().files["i0.bin"] = {1, 2, 3, 4};
  fake::machine().files["i1.bin"] = {5, 6, 7, 8};
}

int run(std::vector<const char*> words) {
  words.insert(words.begin(), "executor_runner");
  fake::machine().log.clear();
  return hil::run(static_cast<int>(words.size()), words.data());
}

const std::string& log() { return fake::machine().log; }

/// Fails with an E line that says `reason`, and without the end marker.
void check_fails(const std::vector<const char*>& words, const char* reason) {
  CHECK(run(words) == 1);
  const size_t at = log().find(reason);
  REQUIRE_MESSAGE(at != std::string::npos, log());
  const size_t line = log().rfind('\n', at);
  CHECK(log()[line == std::string::npos ? 0 : line + 1] == 'E');
  CHECK_FALSE(fake::contains(log(), kEnd));
}

}  // namespace

TEST_CASE("sets run on one loaded method and write their own outputs") {
  prepare();
  REQUIRE(run({"-m", "p.pte", "-o", "a", "-i", "i0.bin", "-o", "b", "-i", "i1.bin"}) == 0);
  CHECK(fake::machine().files["a-0.bin"] == build::Bytes{1, 2, 3, 4});
  CHECK(fake::machine().files["b-0.bin"] == build::Bytes{5, 6, 7, 8});
  CHECK(log().substr(log().size() - sizeof(kEnd) + 1) == kEnd);
  for (const char* line :
       {"build id dead01\n", "Model buffer loaded, has 1 methods\n", "Running method forward\n",
        "Method loaded.\n", "Starting the model execution...\n", "Finished running set 0\n",
        "system_counter_ticks: 7 (set 0)\n", "system_counter_ticks: 7 (set 1)\n",
        "method_allocator_planned:  64 bytes\n", "stack_high_water: 100 / 1000 bytes\n",
        "vm_hwm: 4096 bytes\n"}) {
    CHECK_MESSAGE(fake::contains(log(), line), line << " missing in\n" << log());
  }
  CHECK(fake::contains(log(), "model_pte_program_size:     " +
                                  std::to_string(fake::machine().files["p.pte"].size()) +
                                  " bytes.\n"));
  CHECK_FALSE(fake::contains(log(), "op_ticks"));
}

TEST_CASE("every output of a method is written") {
  prepare();
  build::PlanBuilder plan;
  build::TensorInfo info;
  for (const int64_t offset : {0, 16}) {
    info.offset = offset;
    plan.inputs.push_back(plan.tensor(info));
  }
  plan.outputs = plan.inputs;
  fake::machine().files["p.pte"] = plan.file();
  REQUIRE(run({"-m", "p.pte", "-o", "a", "-i", "i0.bin", "-i", "i1.bin"}) == 0);
  CHECK(fake::machine().files["a-0.bin"] == build::Bytes{1, 2, 3, 4});
  CHECK(fake::machine().files["a-1.bin"] == build::Bytes{5, 6, 7, 8});
}

TEST_CASE("there is to be room for one input at a time") {
  prepare();
  const size_t program = fake::machine().files["p.pte"].size();
  fake::machine().file_pool = (program + 31) / 32 * 32 + 4;
  REQUIRE(run({"-m", "p.pte", "-o", "a", "-i", "i0.bin", "-o", "b", "-i", "i1.bin"}) == 0);
  CHECK(fake::machine().files["b-0.bin"] == build::Bytes{5, 6, 7, 8});
}

TEST_CASE("-p prints the time of each operator") {
  prepare();
  REQUIRE(run({"-m", "p.pte", "-i", "i0.bin", "-o", "a", "-p"}) == 0);
  CHECK(fake::contains(log(), "op_ticks: 0 0 test::copy.out 7\n"));
}

TEST_CASE("a machine without a clock says nothing about time, and says so for -p") {
  prepare();
  fake::machine().has_clock = false;
  REQUIRE(run({"-m", "p.pte", "-i", "i0.bin", "-o", "a", "-p"}) == 0);
  CHECK_FALSE(fake::contains(log(), "ticks:"));
  CHECK(fake::contains(log(), "no clock on this platform"));
}

TEST_CASE("wrong use") {
  prepare();
  check_fails({"-m", "p.pte"}, "no inputs given (-i)");
  check_fails({"-m", "p.pte", "-i", "i0.bin"}, "no output base given (-o)");
  check_fails({"-m", "p.pte", "-i", "i0.bin", "-i", "i1.bin", "-o", "a"},
              "wrong number of inputs: expected 1, got 2");
  check_fails({"-m", "none.pte", "-i", "i0.bin", "-o", "a"}, "cannot open program 'none.pte'");
  check_fails({"-m", "p.pte", "-i", "none.bin", "-o", "a"}, "cannot open input 'none.bin'");
  fake::machine().files["i0.bin"] = {1};
  check_fails({"-m", "p.pte", "-i", "i0.bin", "-o", "a"}, "expected 4 bytes, got 1");
  check_fails({"-q"}, "unknown option");
}

TEST_CASE("an output that cannot be written is a failure") {
  prepare();
  fake::machine().unwritable.insert("a-0.bin");
  check_fails({"-m", "p.pte", "-i", "i0.bin", "-o", "a"},
              "cannot write output 0 (4 bytes) to 'a-0.bin'");
  const std::string too_long(300, 'x');
  check_fails({"-m", "p.pte", "-i", "i0.bin", "-o", too_long.c_str()}, "cannot write output 0");
}

TEST_CASE("pools that are too small name the option that enlarges them") {
  prepare();
  fake::machine().file_pool = 100;
  check_fails({"-m", "p.pte", "-i", "i0.bin", "-o", "a"},
              "input file allocator too small for program 'p.pte'");
  CHECK(fake::contains(log(), "HIL_FILE_POOL_BYTES"));
  prepare();
  fake::machine().method_pool = 100;
  check_fails({"-m", "p.pte", "-i", "i0.bin", "-o", "a"}, "method allocator too small");
  CHECK(fake::contains(log(), "failed with status 0x21 (MemoryAllocationFailed)"));
}

TEST_CASE("bundled test cases are judged one by one") {
  prepare();
  const build::BundledTensor right = {{4}, {0}, {1, 2, 3, 4}}, wrong = {{4}, {0}, {0, 0, 0, 0}};
  fake::machine().files["p.bpte"] =
      build::bundle(build::copy_program(), {{{right}, {right}}, {{right}, {right}}});
  REQUIRE(run({"-m", "p.bpte", "-o", "a"}) == 0);
  CHECK(fake::contains(log(), "TEST: BundleIO index[0] Test_result: PASS\n"));
  CHECK(fake::contains(log(), "TEST: BundleIO index[1] Test_result: PASS\n"));
  CHECK(fake::machine().files["a-0.bin"] == build::Bytes{1, 2, 3, 4});

  fake::machine().files["p.bpte"] =
      build::bundle(build::copy_program(), {{{right}, {wrong}}, {{right}, {right}}});
  check_fails({"-m", "p.bpte"}, "a bundled test case failed");
  CHECK(fake::contains(log(), "TEST: BundleIO index[0] Test_result: FAIL\n"));
  CHECK(fake::contains(log(), "TEST: BundleIO index[1] Test_result: PASS\n"));

  fake::machine().files["p.bpte"] = build::bundle(build::copy_program(), {});
  check_fails({"-m", "p.bpte"}, "the bundle has no test case for method forward");
}

TEST_CASE("given inputs win over bundled ones") {
  prepare();
  const build::BundledTensor wrong = {{4}, {0}, {0, 0, 0, 0}};
  fake::machine().files["p.bpte"] = build::bundle(build::copy_program(), {{{wrong}, {wrong}}});
  REQUIRE(run({"-m", "p.bpte", "-i", "i1.bin", "-o", "a"}) == 0);
  CHECK(fake::machine().files["a-0.bin"] == build::Bytes{5, 6, 7, 8});
  CHECK_FALSE(fake::contains(log(), "BundleIO"));
}

TEST_CASE("a kernel that fails ends the run") {
  prepare();
  build::PlanBuilder plan;
  plan.inputs = {plan.tensor({})};
  plan.outputs = {plan.integer(3)};
  plan.call(plan.op("test::copy", "out"), {0, 1});
  fake::machine().files["p.pte"] = plan.file();
  check_fails({"-m", "p.pte", "-i", "i0.bin", "-o", "a"},
              "Execution of method forward failed with status 0x12 (InvalidArgument)");
}
