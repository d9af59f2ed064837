// The delegate from load to destroy: what is copied, in which layout, and what is refused before
// a byte moves.
#include "ethosu/backend.h"

#include <doctest/doctest.h>

#include <cstring>

#include "loaded.h"

namespace {

using build::data;
using build::Loaded;
using hil::Error;
using hil::ScalarType;

/// Fails with `reason`, before anything was copied or run.
void check_refused(Loaded& loaded, const char* reason, Error expected = Error::InvalidProgram) {
  REQUIRE(loaded.error == Error::Ok);
  fake::take_log();
  CHECK(loaded.execute() == expected);
  const std::string log = fake::take_log();
  CHECK_MESSAGE(fake::contains(log, reason), reason, " missing in ", log);
  CHECK(fake::npu().copies == 0);
  CHECK(fake::npu().invoked == 0);
  CHECK(fake::npu().hooks_begun == fake::npu().hooks_ended);
}

}  // namespace

TEST_CASE("inputs reach scratch, outputs leave it, each in one copy") {
  build::Vela vela;
  vela.inputs = {{{4}, 1, 0, 1}, {{3}, 4, 16, 1}};
  vela.outputs = {{{2, 2}, 2, 48, 1}};
  Loaded loaded(vela);
  REQUIRE(loaded.error == Error::Ok);
  loaded.add(ScalarType::Char, 4, 10);
  loaded.add(ScalarType::Int, 3, 20);
  const hil::Tensor& out = loaded.add(ScalarType::Short, 4);
  fake::npu().work = [&](const hil::ethosu::VelaStream&, hil::Span<uint8_t> scratch) {
    CHECK(reinterpret_cast<uintptr_t>(scratch.data()) % 16 == 0);
    CHECK(scratch.size() == 64);
    CHECK(build::Bytes(scratch.data(), scratch.data() + 4) == build::Bytes{10, 11, 12, 13});
    CHECK(scratch[16] == 20);
    CHECK(scratch[27] == 31);
    for (uint8_t i = 0; i < 8; ++i) scratch[48 + i] = static_cast<uint8_t>(100 + i);
    return Error::Ok;
  };
  REQUIRE(loaded.execute() == Error::Ok);
  CHECK(data(out) == build::Bytes{100, 101, 102, 103, 104, 105, 106, 107});
  CHECK(fake::npu().copies == 3);
  CHECK(fake::npu().bytes_copied == 4 + 12 + 8);
  CHECK(fake::npu().hooks_begun == 1);
  CHECK(fake::npu().hooks_ended == 1);
}

TEST_CASE("every output leaves scratch") {
  build::Vela vela;
  vela.outputs = {{{4}, 1, 16, 1}, {{4}, 1, 32, 1}, {{4}, 1, 48, 1}};
  Loaded loaded(vela);
  loaded.add(ScalarType::Char, 4);
  std::vector<const hil::Tensor*> outputs;
  for (int i = 0; i < 3; ++i) outputs.push_back(&loaded.add(ScalarType::Char, 4));
  fake::npu().work = [&](const hil::ethosu::VelaStream&, hil::Span<uint8_t> scratch) {
    for (uint8_t i = 0; i < 64; ++i) scratch[i] = i;
    return Error::Ok;
  };
  REQUIRE(loaded.execute() == Error::Ok);
  for (uint8_t i = 0; i < 3; ++i) {
    const uint8_t first = static_cast<uint8_t>(16 + 16 * i);
    CHECK(data(*outputs[i])[0] == first);
    CHECK(data(*outputs[i])[3] == first + 3);
  }
}

TEST_CASE("padding behind each row of an output is dropped") {
  build::Vela vela;
  vela.outputs = {{{2, 8}, 1, 16, 1}};
  Loaded loaded(vela);
  loaded.add(ScalarType::Char, 4);
  const hil::Tensor& out = loaded.add(ScalarType::Char, 6);
  fake::npu().work = [&](const hil::ethosu::VelaStream&, hil::Span<uint8_t> scratch) {
    for (uint8_t i = 0; i < 16; ++i) scratch[16 + i] = i;
    return Error::Ok;
  };
  REQUIRE(loaded.execute() == Error::Ok);
  CHECK(data(out) == build::Bytes{0, 1, 2, 8, 9, 10});
  CHECK(fake::npu().copies == 1 + 2);
  CHECK(fake::npu().bytes_copied == 4 + 6);
}

TEST_CASE("packed 4-bit rows become signed 8-bit elements") {
  build::Vela vela;
  vela.outputs = {{{2, 2}, 1, 16, 1}};
  Loaded loaded(vela);
  loaded.add(ScalarType::Char, 4);
  const hil::Tensor& out = loaded.add(ScalarType::Char, 8);
  fake::npu().work = [&](const hil::ethosu::VelaStream&, hil::Span<uint8_t> scratch) {
    const uint8_t packed[4] = {0x21, 0x8F, 0x70, 0xF8};
    std::memcpy(scratch.data() + 16, packed, 4);
    return Error::Ok;
  };
  REQUIRE(loaded.execute() == Error::Ok);
  CHECK(data(out) == build::Bytes{1, 2, 0xFF, 0xF8, 0, 7, 0xF8, 0xFF});
  CHECK(fake::npu().copies == 1 + 2);
  CHECK(fake::npu().bytes_copied == 4 + 4);
}

TEST_CASE("outputs that no adjustment explains") {
  struct {
    build::IoRow row;
    ScalarType type;
    size_t count;
    const char* reason;
  } const cases[] = {
      {{{3, 2}, 1, 16, 1}, ScalarType::Char, 4, "4 bytes cannot be made of 3 rows of 2"},
      {{{2, 2}, 1, 16, 1}, ScalarType::Char, 6, "6 bytes cannot be made of 2 rows of 2"},
      {{{2, 2}, 1, 16, 1}, ScalarType::Char, 12, "12 bytes cannot be made of 2 rows of 2"},
      {{{2, 2}, 1, 16, 1}, ScalarType::Byte, 8, "8 bytes cannot be made of 2 rows of 2"},
      {{{2, 2}, 2, 16, 1}, ScalarType::Short, 8, "16 bytes cannot be made of 2 rows of 4"},
      {{{2, 2}, 2, 16, 1}, ScalarType::Short, 3, "6 bytes cannot be made of 2 rows of 4"},
      {{{0, 2}, 1, 16, 1}, ScalarType::Char, 4, "4 bytes cannot be made of 0 rows of 2"},
      {{{4}, 2, 16, 1}, ScalarType::Char, 4, "output 0: element size mismatch: tensor 1, Vela 2"},
  };
  for (const auto& each : cases) {
    build::Vela vela;
    vela.outputs = {each.row};
    Loaded loaded(vela);
    loaded.add(ScalarType::Char, 4);
    loaded.add(each.type, each.count);
    check_refused(loaded, each.reason);
  }
}

TEST_CASE("inputs are checked before any is copied") {
  struct {
    ScalarType type;
    size_t count;
    const char* reason;
  } const cases[] = {
      {ScalarType::Float, 1, "input 1: scalar type 6 is not an integer of at most 32 bits"},
      {ScalarType::Long, 1, "input 1: scalar type 4 is not an integer of at most 32 bits"},
      {ScalarType::Short, 2, "input 1: element size mismatch: tensor 2, Vela 1"},
      {ScalarType::Char, 3, "input 1: byte size mismatch: tensor 3, Vela 4"},
      {ScalarType::Char, 5, "input 1: byte size mismatch: tensor 5, Vela 4"},
  };
  for (const auto& each : cases) {
    build::Vela vela;
    vela.inputs = {{{4}, 1, 0, 1}, {{4}, 1, 4, 1}};
    Loaded loaded(vela);
    loaded.add(ScalarType::Char, 4);
    loaded.add(each.type, each.count);
    loaded.add(ScalarType::Char, 4);
    check_refused(loaded, each.reason);
  }
}

TEST_CASE("arguments that are missing, no tensors, without data, or constant") {
  Loaded missing((build::Vela()));
  missing.add(ScalarType::Char, 4);
  check_refused(missing, "1 inputs and 1 outputs but 1 arguments");
  Loaded many((build::Vela()));
  for (int i = 0; i < 3; ++i) many.add(ScalarType::Char, 4);
  check_refused(many, "1 inputs and 1 outputs but 3 arguments");
  Loaded scalar((build::Vela()));
  scalar.add(ScalarType::Char, 4);
  scalar.add(ScalarType::Char, 4);
  scalar.value(0).tag = hil::Tag::Int;
  check_refused(scalar, "argument 0 is no tensor", Error::InvalidArgument);
  for (size_t which : {0u, 1u}) {
    Loaded null((build::Vela()));
    null.add(ScalarType::Char, 4);
    null.add(ScalarType::Char, 4);
    null.value(which).tensor.data = nullptr;
    check_refused(null, which == 0 ? "input 0 has no data" : "output 0 has no data");
  }
  Loaded constant((build::Vela()));
  constant.add(ScalarType::Char, 4);
  constant.add(ScalarType::Char, 4).constant = true;
  check_refused(constant, "output 0 is a constant");
}

TEST_CASE("empty tensors and empty scratch need no memory and no copy") {
  build::Vela vela;
  vela.scratch = 0;
  vela.inputs = {{{0, 4}, 1, 0, 1}};
  vela.outputs = {{{0}, 1, 0, 1}};
  Loaded loaded(vela);
  REQUIRE(loaded.error == Error::Ok);
  loaded.add(ScalarType::Char, 0).data = nullptr;
  loaded.add(ScalarType::Char, 0).data = nullptr;
  CHECK(loaded.execute() == Error::Ok);
  CHECK(fake::npu().invoked == 1);
  CHECK(fake::npu().scratch == nullptr);
  CHECK(fake::npu().copies == 0);
}

TEST_CASE("a temp pool that is too small names the option that enlarges it") {
  build::Vela vela;
  vela.scratch = 10000;
  Loaded loaded(vela);
  loaded.add(ScalarType::Char, 4);
  loaded.add(ScalarType::Char, 4);
  check_refused(loaded,
                "Failed to allocate scratch buffer of 10000 bytes from temp_allocator; "
                "build with a larger HIL_TEMP_POOL_BYTES",
                Error::MemoryAllocationFailed);
}

TEST_CASE("a failed run leaves the outputs alone and the hooks paired") {
  Loaded loaded((build::Vela()));
  loaded.add(ScalarType::Char, 4);
  const hil::Tensor& out = loaded.add(ScalarType::Char, 4, 50);
  fake::npu().work = [](const hil::ethosu::VelaStream&, hil::Span<uint8_t>) {
    return Error::InvalidProgram;
  };
  CHECK(loaded.execute() == Error::InvalidProgram);
  CHECK(data(out) == build::Bytes{50, 51, 52, 53});
  CHECK(fake::contains(fake::take_log(), "Ethos-U invocation failed error (-1)"));
  CHECK(fake::npu().hooks_ended == 1);
}

TEST_CASE("destroy closes the platform's state once, and the handle is dead") {
  Loaded loaded((build::Vela()));
  loaded.add(ScalarType::Char, 4);
  loaded.add(ScalarType::Char, 4);
  hil::ethosu::backend().destroy(loaded.handle);
  hil::ethosu::backend().destroy(loaded.handle);
  CHECK(fake::npu().opened == 1);
  CHECK(fake::npu().closed == 1);
  check_refused(loaded, "handle is null or destroyed", Error::DelegateInvalidHandle);
  loaded.handle = nullptr;
  check_refused(loaded, "handle is null or destroyed", Error::DelegateInvalidHandle);
}

TEST_CASE("a stream for a driver of Linux is refused by name") {
  build::Vela vela;
  vela.inputs = {{{4}, 1, 0, 3}};
  vela.outputs = {{{4}, 1, 0, 4}};
  CHECK(Loaded(vela).error == Error::NotSupported);
  CHECK(fake::contains(fake::take_log(), "lie in regions of their own"));
  CHECK(fake::npu().opened == 0);
}

TEST_CASE("init fails on a bad stream, a full pool and a platform that will not") {
  build::Vela vela;
  vela.outputs = {{{4}, 1, 100, 1}};
  CHECK(Loaded(vela).error == Error::InvalidProgram);
  Loaded loaded((build::Vela()));
  loaded.memory.allocate(loaded.memory.available(), 1);
  CHECK(loaded.init() == Error::MemoryAllocationFailed);
  CHECK(fake::contains(fake::take_log(), "method allocator too small for an Ethos-U delegate"));
  loaded.memory.rewind(0);
  fake::npu().open_error = Error::AccessFailed;
  CHECK(loaded.init() == Error::AccessFailed);
}
