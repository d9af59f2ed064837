// Buffers in the order of the offsets, whatever the order of the tensors.
#include "ethosu/linux/batch.h"

#include <doctest/doctest.h>

#include "fake_platform.h"
#include "vela_builder.h"

namespace {

using hil::Error;
using hil::ethosu::linux_driver::Batch;

Error plan(const std::vector<build::IoRow>& rows, Batch* out) {
  const build::Bytes table = build::io_table(rows);
  return plan_batch(hil::ethosu::IoTable({table.data() + 4, table.size() - 4}), "input", out);
}

}  // namespace

TEST_CASE("as Vela orders the inputs of an addition") {
  Batch batch;
  REQUIRE(plan({{{105}, 1, 112, 3}, {{105}, 1, 0, 3}}, &batch) == Error::Ok);
  CHECK(batch.sizes == std::vector<size_t>{105, 105});
  CHECK(batch.buffer_of == std::vector<size_t>{1, 0});
}

TEST_CASE("a tensor without a byte has no buffer") {
  Batch batch;
  REQUIRE(plan({{{16}, 1, 0, 3}, {{0}, 1, 0, 3}, {{3}, 4, 16, 3}}, &batch) == Error::Ok);
  CHECK(batch.sizes == std::vector<size_t>{16, 12});
  CHECK(batch.buffer_of == std::vector<size_t>{0, Batch::kNone, 1});
  batch = Batch();
  REQUIRE(plan({}, &batch) == Error::Ok);
  CHECK(batch.sizes.empty());
}

TEST_CASE("what no batch of buffers can give") {
  struct {
    std::vector<build::IoRow> rows;
    const char* reason;
  } const cases[] = {
      {{{{4}, 1, 16, 3}}, "input 0 begins at byte 16 of its region, the driver's buffer at 0"},
      {{{{4}, 1, 0, 3}, {{4}, 1, 4, 3}}, "input 1 begins at byte 4 of its region, the"},
      {{{{4}, 1, 0, 3}, {{4}, 1, 32, 3}}, "input 1 begins at byte 32 of its region, the"},
      {{{{4}, 1, 0, 3}, {{4}, 1, 0, 3}}, "input 1 begins at byte 0 of its region, the"},
  };
  for (const auto& each : cases) {
    Batch batch;
    fake::take_log();
    CHECK(plan(each.rows, &batch) == Error::NotSupported);
    const std::string log = fake::take_log();
    CHECK_MESSAGE(fake::contains(log, each.reason), each.reason, " missing in ", log);
  }
}
