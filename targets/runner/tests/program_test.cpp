// Program: what is refused before anything in the file is believed.
#include "core/program.h"

#include <doctest/doctest.h>

#include "fake_platform.h"
#include "program_builder.h"

using build::Aligned;
using build::Bytes;

namespace {

hil::Error load(const Bytes& bytes, hil::Program* program = nullptr) {
  fake::reset();
  fake::take_log();
  static hil::Program scratch;
  const Aligned aligned(bytes);
  return (program != nullptr ? *program : scratch).load({aligned.data(), aligned.size()});
}

void check_refused(const Bytes& bytes, const char* reason) {
  CHECK(load(bytes) == hil::Error::InvalidProgram);
  const std::string log = fake::take_log();
  CHECK_MESSAGE(fake::contains(log, reason), reason, " missing in ", log);
}

}  // namespace

TEST_CASE("a good program loads and names its method") {
  const Aligned bytes(build::copy_program());
  hil::Program program;
  REQUIRE(program.load({bytes.data(), bytes.size()}) == hil::Error::Ok);
  CHECK(program.method_count() == 1);
  CHECK(std::string(program.method_name(0)) == "forward");
  CHECK(program.method_name(1) == nullptr);
  CHECK(program.method("forward") != nullptr);
  CHECK(program.method("backward") == nullptr);
}

TEST_CASE("identifiers and versions") {
  Bytes bytes = build::copy_program();
  bytes[7] = '1';
  check_refused(bytes, "program version ET11 is not supported, this runner reads ET12");
  bytes[4] = 'X';
  check_refused(bytes, "not an ExecuTorch program: identifier 58543131, expected ET12");
  build::PlanBuilder plan;
  plan.version = 1;
  check_refused(plan.file(), "program schema version 1 is not supported, this runner reads 0");
}

TEST_CASE("truncation says how much is missing") {
  Bytes bytes = build::copy_program();
  const size_t whole = bytes.size();
  bytes.resize(whole - 1);
  check_refused(bytes, ("program is truncated: " + std::to_string(whole) + " bytes expected, " +
                        std::to_string(whole - 1) + " present")
                           .c_str());
  check_refused({}, "program is truncated: 0 bytes");
}

TEST_CASE("header fields that contradict each other") {
  Bytes bytes = build::copy_program();
  bytes[12] = 8;
  check_refused(bytes, "extended header too short");
  bytes = build::copy_program();
  bytes[24] = 16;
  bytes[25] = 0;
  check_refused(bytes, "segments overlap the program");
  bytes = build::copy_program();
  bytes[16] = 9;
  bytes[17] = 0;
  check_refused(bytes, "program size in the header");
  bytes = build::copy_program();
  for (size_t i = 24; i < 40; ++i) bytes[i] = 0xff;  // base + size overflows 64 bits
  check_refused(bytes, "program is truncated");
}

TEST_CASE("a broken root table is refused by the verifier") {
  Bytes bytes = build::copy_program();
  bytes[0] = 0xff;
  bytes[1] = 0xff;
  check_refused(bytes, "FlatBuffers verification failed");
}

TEST_CASE("misaligned memory is refused") {
  for (const size_t askew : {1, 4, 8}) {
    fake::reset();
    fake::take_log();
    Bytes bytes = build::copy_program();
    bytes.insert(bytes.begin(), askew, 0);
    const Aligned aligned(bytes);
    hil::Program program;
    CHECK(program.load({aligned.data() + askew, aligned.size() - askew}) ==
          hil::Error::InvalidProgram);
    CHECK(fake::contains(fake::take_log(), "not aligned to 16 bytes"));
  }
}

TEST_CASE("a program without methods and segments outside the file are refused") {
  flatbuffers::FlatBufferBuilder fbb;
  fbb.Finish(build::fb::CreateProgramDirect(fbb, 0), "ET12");
  check_refused(Bytes(fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize()),
                "it has no method");
  flatbuffers::FlatBufferBuilder with_segment;
  std::vector<flatbuffers::Offset<build::fb::DataSegment>> segments = {
      build::fb::CreateDataSegment(with_segment, 0, 1)};
  with_segment.Finish(
      build::fb::CreateProgramDirect(with_segment, 0, nullptr, nullptr, nullptr, &segments),
      "ET12");
  check_refused(Bytes(with_segment.GetBufferPointer(),
                      with_segment.GetBufferPointer() + with_segment.GetSize()),
                "a data segment lies outside the file");
}

TEST_CASE("the last segment ends with the segments") {
  build::PlanBuilder plan;
  plan.constant({1, 2, 3, 4});
  plan.initial_state(Bytes(64, 9));  // behind the constants
  Bytes bytes = plan.file();
  CHECK(load(bytes) == hil::Error::Ok);
  --bytes[32];  // the header's size of all segments
  check_refused(bytes, "a data segment lies outside the file");
}

TEST_CASE("constants are found in segments and inline, within bounds only") {
  for (const bool inline_constants : {false, true}) {
    build::PlanBuilder plan;
    plan.inline_constants = inline_constants;
    plan.constant({1, 2, 3, 4});
    const Aligned bytes(plan.file());
    hil::Program program;
    REQUIRE(program.load({bytes.data(), bytes.size()}) == hil::Error::Ok);
    hil::Span<const uint8_t> data;
    REQUIRE(program.constant(1, 4, &data) == hil::Error::Ok);
    CHECK(data[3] == 4);
    CHECK(program.constant(2, 4, &data) == hil::Error::InvalidProgram);
    CHECK(program.constant(1, 1000, &data) == hil::Error::InvalidProgram);
    CHECK(program.constant(1, UINT64_MAX, &data) == hil::Error::InvalidProgram);
  }
}

TEST_CASE("nothing is read beyond its segment, though the file goes on") {
  build::PlanBuilder plan;
  plan.constant({1, 2, 3, 4});
  plan.constant({5, 6, 7, 8});
  plan.initial_state(Bytes(64, 9));  // a segment behind that of the constants
  const Aligned bytes(plan.file());
  hil::Program program;
  REQUIRE(program.load({bytes.data(), bytes.size()}) == hil::Error::Ok);
  hil::Span<const uint8_t> data, state;
  REQUIRE(program.named_data("states", &state) == hil::Error::Ok);
  const uint8_t* end = nullptr;
  for (const uint32_t index : {1u, 2u}) {
    uint64_t size = 4;
    while (program.constant(index, size + 1, &data) == hil::Error::Ok) ++size;
    CHECK(size < 48);
    REQUIRE(program.constant(index, size, &data) == hil::Error::Ok);
    CHECK(data.end() <= state.begin());
    if (end == nullptr) end = data.end();
    CHECK(data.end() == end);  // the same segment's
    for (const uint8_t byte : data) CHECK(byte != 9);
  }
  CHECK(program.initial_state(0, 1, 65, &data) == hil::Error::InvalidProgram);
}

TEST_CASE("initial state and named data") {
  build::PlanBuilder plan;
  plan.initial_state({9, 8});
  const Aligned bytes(plan.file());
  hil::Program program;
  REQUIRE(program.load({bytes.data(), bytes.size()}) == hil::Error::Ok);
  hil::Span<const uint8_t> data;
  REQUIRE(program.initial_state(0, 1, 2, &data) == hil::Error::Ok);
  CHECK(data[0] == 9);
  CHECK(program.initial_state(1, 1, 2, &data) == hil::Error::InvalidProgram);
  CHECK(program.initial_state(0, 7, 2, &data) == hil::Error::InvalidProgram);
  REQUIRE(program.named_data("states", &data) == hil::Error::Ok);
  CHECK(data[0] == 9);
  for (const char* key : {"other", "state", "statess", "s", ""}) {
    CHECK_MESSAGE(program.named_data(key, &data) == hil::Error::NotFound, key);
  }
}
