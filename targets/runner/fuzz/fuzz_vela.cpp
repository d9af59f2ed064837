// libFuzzer: any bytes as an Ethos-U delegate's blob: its blocks, then its driver actions or the
// container of a direct-drive stream.
//   fuzz_vela -max_total_time=60 WORK_CORPUS SEED_CORPUS
// An external block finds its data in the input itself, at any offset.
#include <cstdlib>
#include <cstring>

#include "ethosu/cop2.h"
#include "ethosu/linux/batch.h"
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

/// What the backends rely on: a tensor in scratch lies inside it, and one in a region of its own
/// has its buffer there and no other.
void check(const hil::ethosu::VelaStream& stream, hil::ethosu::IoTable table) {
  if (stream.placement == hil::ethosu::Placement::Separate) {
    hil::ethosu::linux_driver::Batch batch;
    if (plan_batch(table, "tensor", &batch) != hil::Error::Ok) return;
    for (size_t i = 0; i < table.size(); ++i) {
      const size_t buffer = batch.buffer_of[i];
      const bool is_empty = buffer == hil::ethosu::linux_driver::Batch::kNone;
      if ((is_empty ? 0 : batch.sizes[buffer]) != table[i].bytes()) std::abort();
    }
    return;
  }
  const size_t scratch = stream.scratch_bytes;
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
  hil::ethosu::Cop2 container;
  volatile unsigned touched = 0;
  if (hil::ethosu::read_vela_stream(bytes, {find, &input}, &stream) == hil::Error::Ok) {
    touched = sum(stream.commands) + sum(stream.weights);
    check(stream, stream.inputs);
    check(stream, stream.outputs);
    if (hil::ethosu::read_payload(stream.commands, &payload) == hil::Error::Ok) {
      touched = touched + sum(payload.commands);
    }
    if (hil::ethosu::read_cop2(stream.commands, &container) == hil::Error::Ok) {
      touched = touched + sum(container.commands);
    }
  }
  std::free(copy);
  return 0;
}
