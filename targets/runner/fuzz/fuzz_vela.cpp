// libFuzzer: any bytes as an Ethos-U delegate's blob: its blocks, then its driver actions.
//   fuzz_vela -max_total_time=60 WORK_CORPUS SEED_CORPUS
// An external block finds its data in the input itself, at any offset.
#include <cstdlib>
#include <cstring>

#include "ethosu/payload.h"
#include "ethosu/vela_stream.h"

namespace {

struct Input {
  const uint8_t* data;
  size_t size;
};

hil::Error find(const void* context, const char* key, hil::Span<const uint8_t>* out) {
  const Input& input = *static_cast<const Input*>(context);
  const size_t offset = static_cast<uint8_t>(key[0]) * size_t{16};
  if (offset > input.size) return hil::Error::NotFound;
  *out = {input.data + offset, input.size - offset};
  return hil::Error::Ok;
}

/// Touches what was accepted, so that a span that is too long is a finding.
unsigned sum(hil::Span<const uint8_t> bytes) {
  unsigned total = 0;
  for (uint8_t byte : bytes) total += byte;
  return total;
}

void check(hil::ethosu::IoTable table, size_t scratch) {
  for (size_t i = 0; i < table.size(); ++i) {
    const hil::ethosu::IoTensor io = table[i];
    if (io.offset > scratch || io.bytes() > scratch - io.offset) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  void* copy = nullptr;
  if (::posix_memalign(&copy, 16, size == 0 ? 1 : size) != 0) return 0;
  std::memcpy(copy, data, size);
  const Input input = {static_cast<const uint8_t*>(copy), size};
  const hil::Span<const uint8_t> bytes(input.data, size);
  hil::ethosu::VelaStream stream;
  hil::ethosu::Payload payload;
  volatile unsigned touched = 0;
  if (hil::ethosu::read_vela_stream(bytes, {find, &input}, &stream) == hil::Error::Ok) {
    touched = sum(stream.commands) + sum(stream.weights);
    check(stream.inputs, stream.scratch_bytes);
    check(stream.outputs, stream.scratch_bytes);
    if (hil::ethosu::read_payload(stream.commands, &payload) == hil::Error::Ok) {
      touched = touched + sum(payload.commands);
    }
  }
  std::free(copy);
  return 0;
}
