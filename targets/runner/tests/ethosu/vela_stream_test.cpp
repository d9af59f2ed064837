// A delegate's blob: read as written, and every way it can be damaged refused with its place.
#include "ethosu/vela_stream.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "fake_platform.h"
#include "vela_builder.h"

namespace {

using hil::Error;

const build::Bytes kStored(48, 9);
alignas(16) uint8_t stored_data[48];

Error find(const void*, const char* key, hil::Span<const uint8_t>* out) {
  if (std::strcmp(key, "here") == 0) *out = {stored_data, sizeof(stored_data)};
  if (std::strcmp(key, "askew") == 0) *out = {stored_data + 1, 40};
  return out->empty() ? Error::NotFound : Error::Ok;
}
const hil::ethosu::NamedData kNamed = {find, nullptr};

Error read(const build::Bytes& bytes, hil::ethosu::VelaStream* out) {
  const build::Aligned copy(bytes);
  return hil::ethosu::read_vela_stream({copy.data(), copy.size()}, kNamed, out);
}

void check_refused(const build::Bytes& bytes, const char* reason,
                   Error expected = Error::InvalidProgram) {
  fake::take_log();
  hil::ethosu::VelaStream stream;
  CHECK(read(bytes, &stream) == expected);
  const std::string log = fake::take_log();
  CHECK_MESSAGE(fake::contains(log, reason), reason, " missing in ", log);
}

void check_refused(const build::Vela& vela, const char* reason,
                   Error expected = Error::InvalidProgram) {
  check_refused(vela.bytes(), reason, expected);
}

}  // namespace

TEST_CASE("a stream as ExecuTorch writes it") {
  build::Vela vela;
  vela.inputs = {{{2, 3}, 2, 16, 1}, {{5}, 1, 0, 1}};
  const build::Aligned bytes(vela.bytes());
  hil::ethosu::VelaStream stream;
  REQUIRE(hil::ethosu::read_vela_stream({bytes.data(), bytes.size()}, kNamed, &stream) ==
          Error::Ok);
  CHECK(build::Bytes(stream.commands.begin(), stream.commands.end()) == vela.commands);
  CHECK(build::Bytes(stream.weights.begin(), stream.weights.end()) == vela.weights);
  CHECK(stream.scratch_bytes == 64);
  REQUIRE(stream.inputs.size() == 2);
  CHECK(stream.inputs[0].offset == 16);
  CHECK(stream.inputs[0].chunks == 2);
  CHECK(stream.inputs[0].chunk_bytes == 6);
  CHECK(stream.inputs[1].bytes() == 5);
  CHECK(stream.outputs[0].offset == 16);
}

TEST_CASE("weights may be absent or empty") {
  build::Vela vela;
  vela.weights = {};
  hil::ethosu::VelaStream stream;
  CHECK(read(vela.bytes(), &stream) == Error::Ok);
  auto blocks = vela.blocks();
  blocks.erase(blocks.begin() + 2);
  CHECK(read(build::vela_stream(blocks), &stream) == Error::Ok);
  CHECK(stream.weights.data() == nullptr);
}

TEST_CASE("external blocks come from the program's named data") {
  std::memcpy(stored_data, kStored.data(), kStored.size());
  auto blocks = build::Vela().blocks();
  blocks[2] = {"weight_data", {'h', 'e', 'r', 'e'}, 1};
  hil::ethosu::VelaStream stream;
  CHECK(read(build::vela_stream(blocks), &stream) == Error::Ok);
  CHECK(stream.weights.data() == stored_data);
  CHECK(stream.weights.size() == sizeof(stored_data));
  blocks[2].data = {'g', 'o', 'n', 'e'};
  check_refused(build::vela_stream(blocks), "the program has no named data 'gone'",
                Error::InvalidExternalData);
  blocks[2].data = {'a', 's', 'k', 'e', 'w'};
  check_refused(build::vela_stream(blocks), "'askew' for block weight_data are not aligned",
                Error::InvalidExternalData);
  for (const build::Bytes& key : {build::Bytes(), build::Bytes(129, 'k')}) {
    blocks[2].data = key;
    check_refused(build::vela_stream(blocks), "key is empty or too long");
  }
  blocks[2].data = {'h', 0, 'r', 'e'};
  check_refused(build::vela_stream(blocks), "key contains a zero");
}

TEST_CASE("block names, order and headers") {
  const auto good = build::Vela().blocks();
  auto blocks = good;
  blocks[1].name = "cmd_dat";
  check_refused(build::vela_stream(blocks), "at byte 32: unknown block name");
  blocks = good;
  blocks[1].name = "cmd_data\1";
  check_refused(build::vela_stream(blocks), "unknown block name");
  blocks = good;
  std::swap(blocks[0], blocks[1]);
  check_refused(build::vela_stream(blocks), "vela_bin_stream must be its first block");
  blocks = good;
  blocks.insert(blocks.begin() + 3, blocks[2]);
  check_refused(build::vela_stream(blocks), "a block comes twice");
  blocks = good;
  blocks[2].external = 2;
  check_refused(build::vela_stream(blocks), "the external flag is not 0 or 1");
  blocks = good;
  blocks[2].reserved = 1;
  check_refused(build::vela_stream(blocks), "reserved bytes are not 0");
  blocks = good;
  blocks[0].data = {1};
  check_refused(build::vela_stream(blocks), "the first and the last block hold no data");
  for (size_t missing : {1u, 3u, 4u, 5u}) {
    blocks = good;
    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(missing));
    check_refused(build::vela_stream(blocks), ("it has no block " + good[missing].name).c_str());
  }
}

TEST_CASE("sizes against the buffer") {
  build::Bytes bytes = build::Vela().bytes();
  check_refused(build::Bytes(), "ends without vela_end_stream");
  build::Bytes shorter(bytes.begin(), bytes.end() - 32);
  check_refused(shorter, "ends without vela_end_stream");
  build::Bytes longer = bytes;
  longer.push_back(0);
  check_refused(longer, "there is more after vela_end_stream");
  bytes[32 + 16] = 0xFF;  // length of cmd_data
  bytes[32 + 19] = 0xFF;
  check_refused(bytes, "a block is longer than the stream");
  build::Bytes cut = build::vela_stream({{"vela_bin_stream", {}}, {"weight_data", {1}}});
  cut.resize(cut.size() - 1);
  check_refused(cut, "a block's padding is cut off");
  build::Bytes last = build::vela_stream({{"vela_bin_stream", {}}, {"weight_data", kStored}});
  for (const uint8_t length : {uint8_t{49}, uint8_t{64}}) {
    last[32 + 16] = length;
    check_refused(last, "at byte 32: a block is longer than the stream");
  }
  const build::Aligned copy(build::Vela().bytes());
  hil::ethosu::VelaStream stream;
  fake::take_log();
  CHECK(hil::ethosu::read_vela_stream({copy.data() + 1, copy.size() - 1}, kNamed, &stream) ==
        Error::InvalidProgram);
  CHECK(fake::contains(fake::take_log(), "it is not aligned to 16 bytes"));
}

TEST_CASE("tensors in regions of their own, whatever the scratch") {
  build::Vela vela;
  vela.scratch = 0;
  vela.inputs = {{{4}, 1, 112, 3}, {{4}, 1, 0, 3}};
  vela.outputs = {{{4}, 1, 0, 4}};
  hil::ethosu::VelaStream stream;
  REQUIRE(read(vela.bytes(), &stream) == Error::Ok);
  CHECK(stream.placement == hil::ethosu::Placement::Separate);
  vela = build::Vela();
  REQUIRE(read(vela.bytes(), &stream) == Error::Ok);
  CHECK(stream.placement == hil::ethosu::Placement::Scratch);
  vela.inputs = {};
  vela.outputs = {{{4}, 1, 0, 4}};
  REQUIRE(read(vela.bytes(), &stream) == Error::Ok);
  CHECK(stream.placement == hil::ethosu::Placement::Separate);
}

TEST_CASE("input and output tables") {
  build::Vela vela;
  vela.outputs = {{{4}, 3, 0, 1}};
  check_refused(vela, "element size is not 1, 2, 4 or 8");
  vela.outputs = {{{4}, 1, -1, 1}};
  check_refused(vela, "offset is negative");
  vela.outputs = {{{-4}, 1, 0, 1}};
  check_refused(vela, "dimension is negative");
  vela.outputs = {{{0x10000, 0x10000, 4}, 1, 0, 1}};
  check_refused(vela, "a tensor is too large");
  vela.outputs = {{{0x7FFFFFFF}, 8, 0, 1}};
  check_refused(vela, "a tensor is too large");
  vela.outputs = {{{4}, 1, 61, 1}};
  check_refused(vela, "lies outside the scratch area");
  vela.outputs = {{{4}, 1, 0, 3}};
  check_refused(vela, "outputs 0 lies in region 3; supported are scratch (1) and a region of",
                Error::NotSupported);
  vela.outputs = {{{4}, 1, 0, 4}};
  check_refused(vela, "some tensors lie in scratch and others do not");
  auto blocks = build::Vela().blocks();
  blocks[4].data[0] = 2;
  check_refused(build::vela_stream(blocks), "tensor count does not fit its length");
  blocks[4].data = {1, 0};
  check_refused(build::vela_stream(blocks), "tensor count does not fit its length");
  blocks[4].data = build::io_table({{{4}, 1, 0, 1}, {{4}, 1, 0, 1}});
  blocks[4].data[0] = 1;
  check_refused(build::vela_stream(blocks), "tensor count does not fit its length");
  blocks = build::Vela().blocks();
  blocks[3].data.push_back(0);
  check_refused(build::vela_stream(blocks), "scratch_size is no u32");
}

TEST_CASE("no damaged stream is read outside its bytes") {
  constexpr unsigned kSeed = 20260107;
  INFO("seed ", kSeed);
  std::mt19937 random(kSeed);
  const build::Bytes good = build::Vela().bytes();
  size_t accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    build::Bytes bytes = good;
    for (size_t k = 0; k < 1 + random() % 3; ++k) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    const build::Aligned copy(bytes);
    hil::ethosu::VelaStream stream;
    if (hil::ethosu::read_vela_stream({copy.data(), copy.size()}, kNamed, &stream) != Error::Ok) {
      continue;
    }
    ++accepted;
    for (size_t k = 0; k < stream.outputs.size(); ++k) {
      const hil::ethosu::IoTensor io = stream.outputs[k];
      REQUIRE(io.offset + io.bytes() <= stream.scratch_bytes);
    }
  }
  fake::take_log();
  CHECK(accepted > 100);  // data bytes are free
}
