// The line grammar that the harness and ExecuTorch's own scripts read.
#include "core/log.h"

#include <doctest/doctest.h>

#include "fake_platform.h"

TEST_CASE("a line has level, place and message") {
  fake::reset();
  fake::take_log();
  const int line = __LINE__ + 1;
  HIL_LOG(Error, "value %d", 5);
  CHECK(fake::take_log() ==
        "E [executorch:log_test.cpp:" + std::to_string(line) + " " + __func__ + "()] value 5\n");
}

TEST_CASE("a line that is too long is cut and still ends") {
  fake::reset();
  fake::take_log();
  HIL_LOG(Info, "%s", std::string(1000, 'x').c_str());
  const std::string log = fake::take_log();
  CHECK(log.size() < hil::kMaxLogLine);
  CHECK(log.back() == '\n');
}
