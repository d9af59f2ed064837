// The container for a driver of Linux: what is accepted, and each length and field that is wrong.
#include "ethosu/cop2.h"

#include <doctest/doctest.h>

#include "fake_platform.h"
#include "vela_builder.h"

namespace {

using hil::Error;

Error read(const build::Bytes& bytes, hil::ethosu::Cop2* out) {
  const build::Aligned copy(bytes);
  return hil::ethosu::read_cop2({copy.data(), copy.size()}, out);
}

void check_refused(const build::Bytes& bytes, const char* reason,
                   Error expected = Error::InvalidProgram) {
  fake::take_log();
  hil::ethosu::Cop2 container;
  CHECK(read(bytes, &container) == expected);
  const std::string log = fake::take_log();
  CHECK_MESSAGE(fake::contains(log, reason), reason, " missing in ", log);
}

/// With byte `at` another one.
build::Bytes with(size_t at, uint8_t value) {
  build::Bytes bytes = build::cop2();
  bytes[at] = value;
  return bytes;
}

}  // namespace

TEST_CASE("what a container says of its stream") {
  build::Container wanted;
  wanted.cache = 3440;
  wanted.commands = {1, 2, 3, 4, 5, 6, 7, 8};
  const build::Aligned bytes(build::cop2(wanted));
  hil::ethosu::Cop2 container;
  REQUIRE(hil::ethosu::read_cop2({bytes.data(), bytes.size()}, &container) == Error::Ok);
  CHECK(container.config == build::kU85_256);
  CHECK(container.id == build::kU85Id);
  CHECK(container.features == 2);
  CHECK(container.cache_bytes == 3440);
  CHECK(container.commands.size() == 8);
  CHECK(container.commands.data() == bytes.data() + 64);
}

TEST_CASE("damaged containers") {
  check_refused({}, "COP2 at byte 0: it does not begin so");
  check_refused(build::payload({1}), "this is COP1, for bare metal", Error::NotSupported);
  const build::Bytes good = build::cop2();
  for (size_t size = 4; size < good.size(); ++size) {
    check_refused(build::Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(size)),
                  "COP2 at byte ");
  }
  check_refused(with(4, 2), "byte 4: its version is not 1.0");
  check_refused(with(8, 1), "byte 8: its length is not its own");
  check_refused(with(15, 1), "byte 8: its length is not its own");
  check_refused(with(16, 2), "byte 16: its entry is no commands");
  check_refused(with(20, 1), "byte 20: its entry's length is not its own");
  check_refused(with(24, 28), "byte 24: its metadata do not fit");
  check_refused(with(27, 1), "byte 24: its metadata do not fit");
  check_refused(with(28, 'W'), "byte 28: its metadata are not VEUM 1.0");
  check_refused(with(32, 2), "byte 28: its metadata are not VEUM 1.0");
  check_refused(with(36, 19), "byte 36: its metadata do not describe an NPU");
  check_refused(with(36, 25), "byte 36: its metadata do not describe an NPU");
  check_refused(with(24, 40), "byte 68: there is no command stream in it");
  check_refused(with(24, 37), "the stream is no whole number of words");
  check_refused(with(24, 32), "byte 60: the stream is not aligned to 16 bytes");
}

TEST_CASE("a stream beyond what a driver takes") {
  build::Container wanted;
  wanted.commands = build::Bytes((16u << 20) + 4);
  check_refused(build::cop2(wanted), "the stream is longer than 16 MiB");
}
