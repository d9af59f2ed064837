// HIL_ETHOSU_COUNT_IO's override: exactly the calls and bytes that the tensors need, per execution.
#include <doctest/doctest.h>

#include "loaded.h"

namespace {

using build::Loaded;
using hil::ScalarType;

struct Case {
  const char* what;
  build::IoRow input, output;
  size_t input_count, output_count;
  const char* line;
};

std::string counted(Loaded& loaded) {
  fake::take_log();
  CHECK(loaded.execute() == hil::Error::Ok);
  return fake::take_log();
}

}  // namespace

TEST_CASE("every layout is counted") {
  const Case cases[] = {
      {"as it is", {{4}, 1, 0, 1}, {{2, 3}, 1, 16, 1}, 4, 6, "2 calls, 10 bytes"},
      {"padded rows", {{4}, 1, 0, 1}, {{3, 8}, 1, 16, 1}, 4, 15, "4 calls, 19 bytes"},
      {"4-bit rows", {{4}, 1, 0, 1}, {{3, 2}, 1, 16, 1}, 4, 12, "4 calls, 10 bytes"},
      {"no input", {{0}, 1, 0, 1}, {{4}, 1, 16, 1}, 0, 4, "1 calls, 4 bytes"},
      {"nothing", {{0}, 1, 0, 1}, {{0}, 1, 0, 1}, 0, 0, "0 calls, 0 bytes"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.what);
    build::Vela vela;
    vela.inputs = {each.input};
    vela.outputs = {each.output};
    Loaded loaded(vela);
    REQUIRE(loaded.error == hil::Error::Ok);
    loaded.add(ScalarType::Char, each.input_count);
    loaded.add(ScalarType::Char, each.output_count);
    const std::string wanted = std::string("ethosu_io_copies: ") + each.line;
    const std::string first = counted(loaded);
    CHECK_MESSAGE(fake::contains(first, wanted.c_str()), wanted, " missing in ", first);
    const std::string second = counted(loaded);
    CHECK_MESSAGE(fake::contains(second, wanted.c_str()), "counts add up: ", second);
  }
}

TEST_CASE("what is refused copies nothing, and says so") {
  Loaded loaded((build::Vela()));
  loaded.add(ScalarType::Char, 3);
  loaded.add(ScalarType::Char, 4);
  fake::take_log();
  CHECK(loaded.execute() == hil::Error::InvalidProgram);
  CHECK(fake::contains(fake::take_log(), "ethosu_io_copies: 0 calls, 0 bytes"));
}
