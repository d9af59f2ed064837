// What Vela compiled a subgraph to, as the Ethos-U delegate stores it: a stream of named blocks.
// Format: ExecuTorch 1.5.1, backends/arm/arm_vela.py. "vela_bin_stream", blocks,
// "vela_end_stream"; a block is a 16-byte name, u32 length, a byte "external reference", 11
// reserved bytes, and data padded to 16. External data are a key into the program's named data.
#pragma once

#include "core/error.h"
#include "core/span.h"

namespace hil::ethosu {

/// Where a command stream has its inputs and outputs.
enum class Placement : uint8_t {
  Scratch,   // region 1, with everything else that the NPU writes
  Separate,  // regions 3 and 4, of their own (Vela's --separate-io-regions)
};

/// One input or output of the command stream.
struct IoTensor {
  size_t offset = 0;  // in its region
  size_t element_size = 0;
  size_t chunks = 0;       // product of all dimensions but the last
  size_t chunk_bytes = 0;  // last dimension
  size_t bytes() const { return chunks * chunk_bytes; }
};

/// The rows of block "inputs" or "outputs"; read in place, checked by read_vela_stream().
class IoTable {
 public:
  IoTable() = default;
  explicit IoTable(Span<const uint8_t> rows) : rows_(rows) {}
  size_t size() const;
  IoTensor operator[](size_t index) const;

 private:
  Span<const uint8_t> rows_;
};

struct VelaStream {
  Span<const uint8_t> commands;
  Span<const uint8_t> weights;  // empty when there are none
  size_t scratch_bytes = 0;
  IoTable inputs;
  IoTable outputs;
  Placement placement = Placement::Scratch;
};

/// Finds the data of an external block; `context` is handed back.
struct NamedData {
  Error (*find)(const void* context, const char* key, Span<const uint8_t>* out) = nullptr;
  const void* context = nullptr;
};

/// Checks all of `bytes`, which must outlive `out`. Logs what is wrong, and where.
Error read_vela_stream(Span<const uint8_t> bytes, const NamedData& named, VelaStream* out);

}  // namespace hil::ethosu
