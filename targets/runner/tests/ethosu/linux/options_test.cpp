// Compile specs by ExecuTorch's keys: each is read, and each refused when it is not what it says.
#include "ethosu/linux/options.h"

#include <doctest/doctest.h>

#include <cstring>

#include "fake_platform.h"

namespace {

using hil::CompileSpec;
using hil::Error;
using hil::ethosu::linux_driver::Options;

struct Spec {
  const char* key;
  fake::Bytes value;
};

Error read(const std::vector<Spec>& specs, Options* out) {
  std::vector<CompileSpec> given;
  for (const Spec& spec : specs)
    given.push_back({spec.key, {spec.value.data(), spec.value.size()}});
  return read_options({given.data(), given.size()}, out);
}

}  // namespace

TEST_CASE("without a spec: the first device, a minute, cycles") {
  Options options;
  REQUIRE(read({{"compile_flags", {1, 2}}}, &options) == Error::Ok);
  CHECK(std::strcmp(options.device, "/dev/ethosu0") == 0);
  CHECK(options.timeout_ns == 60'000'000'000);
  CHECK(options.cycle_counter);
  for (uint32_t event : options.pmu_events) CHECK(event == 0);
}

TEST_CASE("each spec is read") {
  Options options;
  REQUIRE(read({{"ethosu.device", {'/', 'd', '1', 0}},
                {"ethosu.timeout_ns", {0, 1, 0, 0, 0, 0, 0, 0}},
                {"ethosu.enable_cycle_counter", {0}},
                {"ethosu.pmu_event0", {7, 0, 0, 0}},
                {"ethosu.pmu_event7", {1, 2, 0, 0}}},
               &options) == Error::Ok);
  CHECK(std::strcmp(options.device, "/d1") == 0);
  CHECK(options.timeout_ns == 256);
  CHECK(!options.cycle_counter);
  CHECK(options.pmu_events[0] == 7);
  CHECK(options.pmu_events[7] == 513);
}

TEST_CASE("specs that are not what they say") {
  struct {
    Spec spec;
    const char* reason;
  } const cases[] = {
      {{"ethosu.device", {}}, "ethosu.device of 0 bytes is not the path of a device"},
      {{"ethosu.device", {0, 0}}, "is not the path of a device"},
      {{"ethosu.device", {'/', 0, 'd'}}, "is not the path of a device"},
      {{"ethosu.device", fake::Bytes(128, 'x')}, "is not the path of a device"},
      {{"ethosu.timeout_ns", {1, 0, 0, 0}}, "ethosu.timeout_ns of 4 bytes is not an i64 above 0"},
      {{"ethosu.timeout_ns", fake::Bytes(8, 0)}, "is not an i64 above 0"},
      {{"ethosu.timeout_ns", fake::Bytes(8, 255)}, "is not an i64 above 0"},
      {{"ethosu.enable_cycle_counter", {1, 0}}, "is not a u8"},
      {{"ethosu.pmu_event0", {1}}, "is not a u32"},
      {{"ethosu.pmu_event8", {1, 0, 0, 0}}, "is not one of its counters 0 to 7"},
      {{"ethosu.pmu_event", {1, 0, 0, 0}}, "is not one of its counters 0 to 7"},
      {{"ethosu.pmu_event10", {1, 0, 0, 0}}, "is not one of its counters 0 to 7"},
  };
  for (const auto& each : cases) {
    Options options;
    fake::take_log();
    CHECK(read({each.spec}, &options) == Error::InvalidProgram);
    const std::string log = fake::take_log();
    CHECK_MESSAGE(fake::contains(log, each.reason), each.reason, " missing in ", log);
  }
}
