#include "ethosu/vela_stream.h"

#include <cstring>
#include <initializer_list>

#include "core/log.h"
#include "ethosu/words.h"

namespace hil::ethosu {

namespace {

constexpr size_t kNameBytes = 16;
constexpr size_t kHeaderBytes = 32;
constexpr size_t kAlignment = 16;
constexpr size_t kMaxKeyBytes = 128;  // arm_vela.py writes a SHA-256 in hex
constexpr size_t kDimensions = 6;
constexpr size_t kRowBytes = (kDimensions + 3) * 4;  // shape, element size, offset, region
constexpr int32_t kScratchRegion = 1, kInputRegion = 3, kOutputRegion = 4;

enum Block : unsigned { kFirst, kCommands, kWeights, kScratch, kInputs, kOutputs, kLast, kCount };
constexpr const char* kBlockNames[kCount] = {"vela_bin_stream", "cmd_data", "weight_data",
                                             "scratch_size",    "inputs",   "outputs",
                                             "vela_end_stream"};

Error malformed(size_t offset, const char* what) {
  HIL_LOG(Error, "Malformed vela_bin_stream at byte %zu: %s", offset, what);
  return Error::InvalidProgram;
}

bool is_aligned(const uint8_t* data) { return reinterpret_cast<uintptr_t>(data) % kAlignment == 0; }

/// Reads row `at`; null when it is sound, else what is wrong with it.
const char* read_row(const uint8_t* at, IoTensor* out, int32_t* region) {
  const int32_t element_size = int32_at(at + 4 * kDimensions);
  const int32_t offset = int32_at(at + 4 * (kDimensions + 1));
  *region = int32_at(at + 4 * (kDimensions + 2));
  if (element_size != 1 && element_size != 2 && element_size != 4 && element_size != 8) {
    return "a tensor's element size is not 1, 2, 4 or 8";
  }
  if (offset < 0) return "a tensor's offset is negative";
  out->element_size = static_cast<size_t>(element_size);
  out->offset = static_cast<size_t>(offset);
  uint64_t elements = 1;
  uint64_t chunks = 1;
  for (size_t i = 0; i < kDimensions; ++i) {
    const int32_t extent = int32_at(at + 4 * i);
    if (extent < 0) return "a tensor's dimension is negative";
    elements *= static_cast<uint64_t>(extent);
    if (elements > INT32_MAX || chunks > INT32_MAX) return "a tensor is too large";
    if (i + 1 < kDimensions) chunks *= static_cast<uint64_t>(extent);
  }
  const uint64_t last = static_cast<uint64_t>(int32_at(at + 4 * (kDimensions - 1)));
  if (last > INT32_MAX / out->element_size) return "a tensor is too large";
  out->chunks = static_cast<size_t>(chunks);
  out->chunk_bytes = static_cast<size_t>(last) * out->element_size;
  if (uint64_t{out->chunks} * out->chunk_bytes > INT32_MAX) return "a tensor is too large";
  return nullptr;
}

class Reader {
 public:
  Reader(Span<const uint8_t> bytes, const NamedData& named) : bytes_(bytes), named_(named) {}

  Error read(VelaStream* out) {
    if (!is_aligned(bytes_.data())) return malformed(0, "it is not aligned to 16 bytes");
    Error error = Error::Ok;
    while (error == Error::Ok && !has(kLast)) error = read_block();
    if (error != Error::Ok) return error;
    if (at_ != bytes_.size()) return malformed(at_, "there is more after vela_end_stream");
    for (unsigned block : {kCommands, kScratch, kInputs, kOutputs}) {
      if (!has(block)) return missing(block);
    }
    return decode(out);
  }

 private:
  bool has(unsigned block) const { return (seen_ >> block & 1u) != 0; }

  Error missing(unsigned block) const {
    HIL_LOG(Error, "Malformed vela_bin_stream: it has no block %s", kBlockNames[block]);
    return Error::InvalidProgram;
  }

  Error read_block() {
    const Span<const uint8_t> header = bytes_.sub(at_, kHeaderBytes);
    if (header.empty()) return malformed(at_, "it ends without vela_end_stream");
    const unsigned block = block_named(header.data());
    if (block == kCount) return malformed(at_, "unknown block name");
    if ((seen_ == 0) != (block == kFirst)) {
      return malformed(at_, "vela_bin_stream must be its first block and no other");
    }
    if (has(block)) return malformed(at_, "a block comes twice");
    const size_t length = uint32_at(header.data() + kNameBytes);
    const uint8_t external = header[kNameBytes + 4];
    if (external > 1) return malformed(at_ + kNameBytes + 4, "the external flag is not 0 or 1");
    for (size_t i = kNameBytes + 5; i < kHeaderBytes; ++i) {
      if (header[i] != 0) return malformed(at_ + i, "reserved bytes are not 0");
    }
    const size_t left = bytes_.size() - at_ - kHeaderBytes;
    if (length > left) return malformed(at_, "a block is longer than the stream");
    const size_t padding = (kAlignment - length % kAlignment) % kAlignment;
    if (padding > left - length) return malformed(at_, "a block's padding is cut off");
    if ((block == kFirst || block == kLast) && length != 0) {
      return malformed(at_, "the first and the last block hold no data");
    }
    const Span<const uint8_t> data(header.data() + kHeaderBytes, length);
    seen_ |= 1u << block;
    start_[block] = at_;
    at_ += kHeaderBytes + length + padding;
    data_[block] = data;
    return external == 1 ? resolve(block) : Error::Ok;
  }

  static unsigned block_named(const uint8_t* name) {
    for (unsigned block = kFirst; block < kCount; ++block) {
      uint8_t wanted[kNameBytes] = {};
      std::memcpy(wanted, kBlockNames[block], std::strlen(kBlockNames[block]));
      if (std::memcmp(name, wanted, kNameBytes) == 0) return block;
    }
    return kCount;
  }

  /// Replaces the key of an external block by the data it names.
  Error resolve(unsigned block) {
    char key[kMaxKeyBytes + 1];
    const Span<const uint8_t> stored = data_[block];
    if (stored.empty() || stored.size() > kMaxKeyBytes) {
      return malformed(start_[block], "an external block's key is empty or too long");
    }
    std::memcpy(key, stored.data(), stored.size());
    key[stored.size()] = '\0';
    if (std::strlen(key) != stored.size()) {
      return malformed(start_[block], "an external block's key contains a zero");
    }
    data_[block] = {};
    if (named_.find == nullptr || named_.find(named_.context, key, &data_[block]) != Error::Ok) {
      HIL_LOG(Error, "Ethos-U block %s is external and the program has no named data '%s'",
              kBlockNames[block], key);
      return Error::InvalidExternalData;
    }
    if (!is_aligned(data_[block].data())) {
      HIL_LOG(Error, "named data '%s' for block %s are not aligned to 16 bytes", key,
              kBlockNames[block]);
      return Error::InvalidExternalData;
    }
    return Error::Ok;
  }

  Error decode(VelaStream* out) const {
    if (data_[kScratch].size() != 4) return malformed(start_[kScratch], "scratch_size is no u32");
    out->commands = data_[kCommands];
    out->weights = data_[kWeights];
    out->scratch_bytes = uint32_at(data_[kScratch].data());
    HIL_TRY(read_table(kInputs, kInputRegion, out, &out->inputs));
    return read_table(kOutputs, kOutputRegion, out, &out->outputs);
  }

  /// All tensors lie in scratch, or all inputs in `own` and all outputs in theirs; the first says
  /// which.
  Error read_table(unsigned block, int32_t own, VelaStream* stream, IoTable* out) const {
    const Span<const uint8_t> data = data_[block];
    const int32_t count = data.size() < 4 ? -1 : int32_at(data.data());
    if (count < 0 || data.size() != 4 + uint64_t{static_cast<uint32_t>(count)} * kRowBytes) {
      return malformed(start_[block], "its tensor count does not fit its length");
    }
    *out = IoTable(data.sub(4, data.size() - 4));
    for (size_t i = 0; i < out->size(); ++i) {
      IoTensor tensor;
      int32_t region = 0;
      const char* wrong = read_row(data.data() + 4 + i * kRowBytes, &tensor, &region);
      if (wrong != nullptr) return malformed(start_[block], wrong);
      if (region != kScratchRegion && region != own) {
        HIL_LOG(Error,
                "Ethos-U %s %zu lies in region %d; supported are scratch (1) and a region of "
                "their own (%d)",
                kBlockNames[block], i, static_cast<int>(region), static_cast<int>(own));
        return Error::NotSupported;
      }
      const Placement here = region == own ? Placement::Separate : Placement::Scratch;
      const bool is_first = i == 0 && (block == kInputs || stream->inputs.size() == 0);
      if (is_first) stream->placement = here;
      if (here != stream->placement) {
        return malformed(start_[block], "some tensors lie in scratch and others do not");
      }
      const size_t scratch = stream->scratch_bytes;
      if (here == Placement::Scratch &&
          (tensor.offset > scratch || tensor.bytes() > scratch - tensor.offset)) {
        return malformed(start_[block], "a tensor lies outside the scratch area");
      }
    }
    return Error::Ok;
  }

  Span<const uint8_t> bytes_;
  const NamedData& named_;
  size_t at_ = 0;
  unsigned seen_ = 0;
  size_t start_[kCount] = {};
  Span<const uint8_t> data_[kCount];
};

}  // namespace

size_t IoTable::size() const { return rows_.size() / kRowBytes; }

IoTensor IoTable::operator[](size_t index) const {
  IoTensor tensor;
  int32_t region = 0;
  read_row(rows_.data() + index * kRowBytes, &tensor, &region);
  return tensor;
}

Error read_vela_stream(Span<const uint8_t> bytes, const NamedData& named, VelaStream* out) {
  return Reader(bytes, named).read(out);
}

}  // namespace hil::ethosu
