// The delegate over a driver of Linux. The cases named after a pull request of ExecuTorch (17367)
// are faults that reviewers, or we, found in its backend for this platform; `hil bench mutants`
// plants each of them here (tools/bench/own/direct.yaml).
#include <doctest/doctest.h>

#include <cstring>

#include <sys/mman.h>

#include "loaded.h"
#include "world.h"

namespace {

using build::data;
using build::Loaded;
using fake::world;
using hil::Error;
using hil::ScalarType;

build::Vela direct() {
  build::Vela vela;
  vela.commands = build::cop2();
  vela.scratch = 0;
  vela.inputs = {{{4}, 1, 0, 3}};
  vela.outputs = {{{4}, 1, 0, 4}};
  return vela;
}

void check_said(const char* reason) {
  const std::string log = fake::take_log();
  CHECK_MESSAGE(fake::contains(log, reason), reason, " missing in ", log);
}

/// Each output byte is the first input's byte, plus one.
void add_one(fake::Regions regions) {
  for (size_t i = 0; i < regions[4].size() && i < regions[3].size(); ++i) {
    regions[4][i] = static_cast<uint8_t>(regions[3][i] + 1);
  }
}

}  // namespace

TEST_CASE("weights, commands and inputs reach the NPU, and outputs come back, again and again") {
  build::Vela vela = direct();
  vela.scratch = 100;
  Loaded loaded(vela);
  REQUIRE(loaded.error == Error::Ok);
  loaded.add(ScalarType::Char, 4, 10);
  const hil::Tensor& out = loaded.add(ScalarType::Char, 4);
  world().npu.work = [&](fake::Regions regions) {
    CHECK(build::Bytes(regions[0].begin(), regions[0].end()) == vela.weights);
    add_one(regions);
  };
  for (uint8_t first : build::Bytes{10, 20}) {
    loaded.value(0).tensor.data[0] = first;
    REQUIRE(loaded.execute() == Error::Ok);
    CHECK(data(out) == build::Bytes{static_cast<uint8_t>(first + 1), 12, 13, 14});
  }
  CHECK(world().npu.region_sizes == std::vector<std::vector<size_t>>(2, {20, 100, 0, 4, 4}));
  CHECK(world().npu.commands[1] == build::u32(0xFFFF));
  check_said("Ethos-U Linux delegate cycle counter: 0");
}

TEST_CASE("17367: inputs lie at their offsets, which are not in their order") {
  build::Vela vela = direct();
  vela.inputs = {{{5}, 1, 16, 3}, {{5}, 1, 0, 3}};
  vela.outputs = {{{5}, 1, 16, 4}, {{5}, 1, 0, 4}};
  Loaded loaded(vela);
  REQUIRE(loaded.error == Error::Ok);
  loaded.add(ScalarType::Char, 5, 10);
  loaded.add(ScalarType::Char, 5, 50);
  const hil::Tensor& high = loaded.add(ScalarType::Char, 5);
  const hil::Tensor& low = loaded.add(ScalarType::Char, 5);
  world().npu.work = [](fake::Regions regions) {
    CHECK(regions[3][0] == 50);
    CHECK(regions[3][16] == 10);
    regions[4][0] = 1;
    regions[4][16] = 2;
  };
  REQUIRE(loaded.execute() == Error::Ok);
  CHECK(low.data[0] == 1);
  CHECK(high.data[0] == 2);
}

TEST_CASE("17367: no input is copied into a scratch that only the NPU uses") {
  build::Vela vela = direct();
  vela.inputs = {{{64}, 1, 0, 3}};
  for (uint32_t scratch : {0u, 16u}) {
    vela.scratch = scratch;
    Loaded loaded(vela);
    REQUIRE(loaded.error == Error::Ok);
    loaded.add(ScalarType::Char, 64);
    loaded.add(ScalarType::Char, 4);
    REQUIRE(loaded.execute() == Error::Ok);
    CHECK(loaded.temp.high_water() == 0);
  }
}

TEST_CASE("17367: an input's size is checked before a byte of it is copied") {
  Loaded loaded(direct());
  REQUIRE(loaded.error == Error::Ok);
  loaded.add(ScalarType::Char, 100);
  loaded.add(ScalarType::Char, 4);
  const size_t before = world().system.calls(fake::Call::Write);
  CHECK(loaded.execute() == Error::InvalidProgram);
  check_said("input 0: byte size mismatch: tensor 100, Vela 4");
  CHECK(world().system.calls(fake::Call::Write) == before);
}

TEST_CASE("17367: no read beyond the output of a program that is not what it says") {
  build::Vela vela = direct();
  vela.outputs = {{{3, 4}, 1, 0, 4}};
  Loaded loaded(vela);
  REQUIRE(loaded.error == Error::Ok);
  loaded.add(ScalarType::Char, 4);
  loaded.add(ScalarType::Char, 15);  // 5 in a row, neither fewer nor twice as many
  CHECK(loaded.execute() == Error::InvalidProgram);
  check_said("15 bytes cannot be made of 3 rows of 4");
  CHECK(world().npu.commands.empty());
}

TEST_CASE("17367: an output whose rows are longer for the NPU does not go beyond the tensor") {
  build::Vela vela = direct();
  vela.outputs = {{{2, 8}, 1, 0, 4}};
  Loaded loaded(vela);
  REQUIRE(loaded.error == Error::Ok);
  loaded.add(ScalarType::Char, 4);
  const hil::Tensor& out = loaded.add(ScalarType::Char, 6);
  world().npu.work = [](fake::Regions regions) {
    for (uint8_t i = 0; i < 16; ++i) regions[4][i] = i;
  };
  REQUIRE(loaded.execute() == Error::Ok);
  CHECK(data(out) == build::Bytes{0, 1, 2, 8, 9, 10});
  loaded.temp = hil::Arena();
}

TEST_CASE("packed 4-bit rows become signed 8-bit elements") {
  build::Vela vela = direct();
  vela.outputs = {{{2}, 1, 0, 4}};
  Loaded loaded(vela);
  loaded.add(ScalarType::Char, 4);
  const hil::Tensor& out = loaded.add(ScalarType::Char, 4);
  world().npu.work = [](fake::Regions regions) {
    regions[4][0] = 0x8F;
    regions[4][1] = 0x21;
  };
  REQUIRE(loaded.execute() == Error::Ok);
  CHECK(data(out) == build::Bytes{0xFF, 0xF8, 1, 2});
}

TEST_CASE("a temp pool that is too small for an output that is adjusted") {
  build::Vela vela = direct();
  vela.outputs = {{{300, 2}, 1, 0, 4}};
  Loaded loaded(vela);
  loaded.add(ScalarType::Char, 4);
  loaded.add(ScalarType::Char, 300);
  CHECK(loaded.execute() == Error::MemoryAllocationFailed);
  check_said("Failed to allocate output buffer of 600 bytes from temp_allocator");
}

TEST_CASE("17367: scratch 0 is a buffer that is absent, and no buffer of size 0") {
  build::Vela vela = direct();
  vela.weights = {};
  Loaded loaded(vela);
  REQUIRE(loaded.error == Error::Ok);
  loaded.add(ScalarType::Char, 4);
  loaded.add(ScalarType::Char, 4);
  REQUIRE(loaded.execute() == Error::Ok);
  CHECK(world().npu.region_sizes[0] == std::vector<size_t>{0, 0, 0, 4, 4});
}

TEST_CASE("tensors without a byte have no buffer") {
  build::Vela vela = direct();
  vela.inputs = {{{0}, 1, 0, 3}, {{4}, 1, 0, 3}};
  vela.outputs = {{{0}, 1, 0, 4}};
  Loaded loaded(vela);
  REQUIRE(loaded.error == Error::Ok);
  loaded.add(ScalarType::Char, 0).data = nullptr;
  loaded.add(ScalarType::Char, 4);
  loaded.add(ScalarType::Char, 0).data = nullptr;
  REQUIRE(loaded.execute() == Error::Ok);
  CHECK(world().npu.region_sizes[0] == std::vector<size_t>{20, 0, 0, 4, 0});
}

TEST_CASE("17367: an input may be memory that nobody may write to") {
  Loaded loaded(direct());
  hil::Tensor& input = loaded.add(ScalarType::Char, 4, 7);
  loaded.add(ScalarType::Char, 4);
  void* page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  uint8_t* own = input.data;
  input.data = static_cast<uint8_t*>(page);
  input.constant = true;
  CHECK(loaded.execute() == Error::Ok);
  input.data = own;
  ::munmap(page, 4096);
}

TEST_CASE("17367: nothing is left of a delegate, after a thousand of them") {
  Loaded loaded(direct());
  hil::ethosu::backend().destroy(loaded.handle);
  for (int i = 0; i < 1000; ++i) {
    loaded.memory.rewind(0);
    REQUIRE(loaded.init() == Error::Ok);
    hil::ethosu::backend().destroy(loaded.handle);
  }
  CHECK(world().driver.open_files() == 0);
  CHECK(world().npu.taken.empty());
}

TEST_CASE("17367: an inference that takes too long is cancelled") {
  const int64_t limit = 5;
  Loaded loaded(direct(), {{"ethosu.timeout_ns", {reinterpret_cast<const uint8_t*>(&limit), 8}}});
  REQUIRE(loaded.error == Error::Ok);
  loaded.add(ScalarType::Char, 4);
  const hil::Tensor& out = loaded.add(ScalarType::Char, 4, 9);
  world().npu.stuck = true;
  CHECK(loaded.execute() == Error::InvalidState);
  const std::string log = fake::take_log();
  CHECK(fake::contains(log, "Ethos-U inference timed out after 5 ns"));
  CHECK(fake::contains(log, "Ethos-U inference was cancelled"));
  CHECK(data(out) == build::Bytes{9, 10, 11, 12});
  world().npu.stuck = false;
  CHECK(loaded.execute() == Error::Ok);
}

TEST_CASE("streams for bare metal are refused by name") {
  build::Vela vela;
  CHECK(Loaded(vela).error == Error::NotSupported);
  check_said("lie in scratch, as bare metal takes them");
  vela = direct();
  vela.commands = build::payload({1});
  CHECK(Loaded(vela).error == Error::NotSupported);
  check_said("this is COP1, for bare metal");
  CHECK(world().driver.open_files() == 0);
}

TEST_CASE("a stream for another NPU") {
  build::Vela vela = direct();
  vela.commands = build::cop2({0x20000117});
  CHECK(Loaded(vela).error == Error::InvalidState);
  const std::string log = fake::take_log();
  CHECK(fake::contains(log, "NPU config mismatch. npu.macs_per_cc=8, optimizer.macs_per_cc=7"));
  CHECK(fake::contains(log, "Ethos-U Linux driver invocation failed: creating a network: Invalid"));
  CHECK(world().driver.open_files() == 0);
}

TEST_CASE("an NPU that stops, and one that refuses") {
  struct {
    uint32_t state;
    const char* reason;
  } const cases[] = {
      {HIL_ETHOSU_ERROR, "Ethos-U inference failed with status ERROR"},
      {HIL_ETHOSU_REJECTED, "Ethos-U inference failed with status REJECTED"},
  };
  for (const auto& each : cases) {
    Loaded loaded(direct());
    loaded.add(ScalarType::Char, 4);
    loaded.add(ScalarType::Char, 4);
    world().npu.ending = {each.state, 0, 0, "so it is"};
    CHECK(loaded.execute() == Error::InvalidState);
    check_said(each.reason);
  }
}

TEST_CASE("tensors that no batch of buffers places, a full pool, and a bad compile spec") {
  build::Vela vela = direct();
  vela.inputs = {{{4}, 1, 16, 3}};
  CHECK(Loaded(vela).error == Error::NotSupported);
  vela = direct();
  vela.outputs = {{{4}, 1, 16, 4}};
  CHECK(Loaded(vela).error == Error::NotSupported);
  check_said("output 0 begins at byte 16 of its region");
  CHECK(Loaded(direct(), {{"ethosu.timeout_ns", {}}}).error == Error::InvalidProgram);
  Loaded loaded(direct());
  hil::ethosu::backend().destroy(loaded.handle);
  loaded.memory.allocate(loaded.memory.available() - 200, 1);
  CHECK(loaded.init() == Error::MemoryAllocationFailed);
  check_said("method allocator too small for an Ethos-U driver's state");
  loaded.handle = nullptr;
}
