// Every call that the driver library makes goes wrong once, in every way it can: each time the
// delegate says so, gives no output, leaves nothing behind, and works again.
#include <doctest/doctest.h>

#include "loaded.h"
#include "world.h"

namespace {

using build::Loaded;
using fake::Call;
using fake::Fault;
using fake::world;
using hil::Error;
using hil::ScalarType;

build::Vela direct() {
  build::Vela vela;
  vela.commands = build::cop2();
  vela.inputs = {{{40}, 1, 0, 3}};
  vela.outputs = {{{40}, 1, 0, 4}};
  return vela;
}

struct Way {
  Call call;
  Fault fault;
  const char* said;
};
constexpr Way kWays[] = {
    {Call::Open, Fault::Fails, "invocation failed: opening /dev/ethosu0: Input/output error"},
    {Call::Ioctl, Fault::Fails, "invocation failed: "},
    {Call::Read, Fault::Fails, "invocation failed: reading a buffer: Input/output error"},
    {Call::Read, Fault::Empty, "invocation failed: reading a buffer: 0 of 40 bytes"},
    {Call::Write, Fault::Fails, "invocation failed: writing a buffer: Input/output error"},
    {Call::Write, Fault::Empty, "invocation failed: writing a buffer: 0 of "},
    {Call::Poll, Fault::Fails, "invocation failed: waiting for an inference: Input/output error"},
    {Call::Poll, Fault::TimesOut, "timed out after 60000000000 ns"},
};

/// Loads and runs with the fault in it; true when the fault was met.
bool meets(const Way& way, size_t number) {
  fake::reset_npu();
  Loaded loaded(direct());
  hil::ethosu::backend().destroy(loaded.handle);
  loaded.memory.rewind(0);
  loaded.handle = nullptr;
  loaded.add(ScalarType::Char, 40);
  const hil::Tensor& out = loaded.add(ScalarType::Char, 40, 5);
  const build::Bytes before = build::data(out);
  fake::take_log();
  world().system.plan(way.call, number, way.fault);
  Error error = loaded.init();
  if (error == Error::Ok) error = loaded.execute();
  if (!world().system.met()) return false;
  const std::string log = fake::take_log();
  CHECK(error == Error::InvalidState);
  CHECK_MESSAGE(fake::contains(log, way.said), way.said, " missing in ", log);
  if (way.call != Call::Read) CHECK(build::data(out) == before);
  if (loaded.handle == nullptr) REQUIRE(loaded.init() == Error::Ok);
  CHECK(loaded.execute() == Error::Ok);
  hil::ethosu::backend().destroy(loaded.handle);
  loaded.handle = nullptr;
  CHECK(world().driver.open_files() == 0);
  CHECK(world().npu.taken.empty());
  return true;
}

}  // namespace

TEST_CASE("any call of the driver's fails") {
  for (const Way& way : kWays) {
    size_t met = 0;
    while (meets(way, met)) ++met;
    CAPTURE(way.said);
    CHECK(met >= 1);
  }
}

TEST_CASE("a call that does less than it was asked for is made again") {
  for (Call call : {Call::Read, Call::Write}) {
    Loaded loaded(direct());
    loaded.add(ScalarType::Char, 40, 3);
    const hil::Tensor& out = loaded.add(ScalarType::Char, 40);
    world().npu.work = [](fake::Regions regions) {
      for (size_t i = 0; i < 40; ++i) regions[4][i] = regions[3][i];
    };
    world().system.plan(call, 0, Fault::Short);
    REQUIRE(loaded.execute() == Error::Ok);
    CHECK(world().system.met());
    CHECK(build::data(out) == build::data(loaded.value(0).tensor));
  }
}

TEST_CASE("a call that a signal interrupts is made again") {
  for (Call call : {Call::Read, Call::Write, Call::Poll}) {
    Loaded loaded(direct());
    loaded.add(ScalarType::Char, 40, 3);
    loaded.add(ScalarType::Char, 40);
    world().system.plan(call, 0, Fault::Fails, EINTR);
    CHECK(loaded.execute() == Error::Ok);
    CHECK(world().system.met());
  }
}

TEST_CASE("a device that is not there, does not answer, or is of another version") {
  const char other[] = "/dev/ethosu7";
  CHECK(Loaded(direct(),
               {{"ethosu.device", {reinterpret_cast<const uint8_t*>(other), sizeof(other)}}})
            .error == Error::InvalidState);
  CHECK(fake::contains(fake::take_log(), "opening /dev/ethosu7: No such file or directory"));
  Loaded loaded(direct());
  hil::ethosu::backend().destroy(loaded.handle);
  loaded.handle = nullptr;
  loaded.memory.rewind(0);
  world().npu.answers = false;
  CHECK(loaded.init() == Error::InvalidState);
  CHECK(fake::contains(fake::take_log(), "capabilities: Input/output error"));
}

TEST_CASE("a failure to close does not stop anything") {
  Loaded loaded(direct());
  loaded.add(ScalarType::Char, 40);
  loaded.add(ScalarType::Char, 40);
  world().system.plan(Call::Close, 0, Fault::Fails);
  CHECK(loaded.execute() == Error::Ok);
  CHECK(world().system.met());
}
