// Driver actions: what is accepted, and each message of Arm's driver for what is not.
#include "ethosu/payload.h"

#include <doctest/doctest.h>

#include "fake_platform.h"
#include "vela_builder.h"

namespace {

void check_refused(const build::Bytes& bytes, const char* reason,
                   hil::Error expected = hil::Error::InvalidProgram) {
  fake::take_log();
  const build::Aligned copy(bytes);
  hil::ethosu::Payload payload;
  CHECK(hil::ethosu::read_payload({copy.data(), copy.size()}, &payload) == expected);
  const std::string log = fake::take_log();
  CHECK_MESSAGE(fake::contains(log, reason), reason, " missing in ", log);
}

}  // namespace

TEST_CASE("configuration and command stream are found") {
  const build::Aligned bytes(build::payload({1, 2, 3}));
  hil::ethosu::Payload payload;
  REQUIRE(hil::ethosu::read_payload({bytes.data(), bytes.size()}, &payload) == hil::Error::Ok);
  CHECK(payload.has_config);
  CHECK(payload.config == build::kU55_128);
  CHECK(payload.id == build::kU55Id);
  CHECK(payload.commands.size() == 12);
  CHECK(payload.commands.data() == bytes.data() + 32);
}

TEST_CASE("a length above 16 bits uses the action's second byte") {
  const build::Aligned bytes(build::payload(std::vector<uint32_t>(0x10003)));
  hil::ethosu::Payload payload;
  REQUIRE(hil::ethosu::read_payload({bytes.data(), bytes.size()}, &payload) == hil::Error::Ok);
  CHECK(payload.commands.size() == 4 * 0x10003);
}

TEST_CASE("malformed payloads") {
  const build::Bytes good = build::payload({1, 2, 3});
  check_refused({}, "not a multiple of 4");
  check_refused(build::Bytes(good.begin(), good.end() - 1), "custom_data_size=0x2b not a");
  build::Bytes bytes = good;
  bytes[3] = '2';
  check_refused(bytes, "Custom Operator Payload: 844123971 is not correct, expected 31504f43");
  check_refused(build::Bytes(good.begin(), good.end() - 4), "the action at byte 28 is cut off");
  check_refused(build::Bytes(good.begin(), good.begin() + 12), "the action at byte 4 is cut off");
  check_refused(build::Bytes(good.begin(), good.begin() + 28), "no command stream in it");
  bytes = good;
  bytes[16] = 3;
  check_refused(bytes, "UNSUPPORTED driver_action_command: 3", hil::Error::NotSupported);
  bytes = good;
  bytes.insert(bytes.end(), {2, 0, 0, 0});
  check_refused(bytes, "a second command stream at byte 44", hil::Error::NotSupported);
}
