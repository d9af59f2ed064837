#include "ethosu/cop2.h"

#include <cstring>

#include "core/log.h"
#include "ethosu/words.h"

namespace hil::ethosu {

namespace {

constexpr size_t kHeader = 16, kEntry = kHeader + 8, kMetadata = kEntry + 4;
constexpr size_t kDescription = 12;          // of the metadata, before what it describes
constexpr size_t kShortestDescription = 20;  // CONFIG, ID, features, cache
constexpr uint32_t kVersion = 1, kCommands = 1;
constexpr size_t kMostStream = size_t{16} << 20;  // a driver of Linux takes no more
constexpr size_t kAlignment = 16;

uint64_t uint64_at(const uint8_t* at) { return uint32_at(at) | uint64_t{uint32_at(at + 4)} << 32; }

Error wrong(size_t offset, const char* what) {
  HIL_LOG(Error, "Custom Operator Payload: COP2 at byte %zu: %s", offset, what);
  return Error::InvalidProgram;
}

bool begins_with(Span<const uint8_t> bytes, const char* magic) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), magic, 4) == 0;
}

Error read_metadata(Span<const uint8_t> metadata, Cop2* out) {
  const uint8_t* at = metadata.data();
  if (!begins_with(metadata, "VEUM") || uint32_at(at + 4) != kVersion) {
    return wrong(kMetadata, "its metadata are not VEUM 1.0");
  }
  const size_t described = uint32_at(at + 8);
  if (described < kShortestDescription || described > metadata.size() - kDescription) {
    return wrong(kMetadata + 8, "its metadata do not describe an NPU");
  }
  out->config = uint32_at(at + kDescription);
  out->id = uint32_at(at + kDescription + 4);
  out->features = uint32_at(at + kDescription + 8);
  out->cache_bytes = uint64_at(at + kDescription + 12);
  return Error::Ok;
}

Error check_stream(Span<const uint8_t> commands, size_t start) {
  if (commands.empty()) return wrong(start, "there is no command stream in it");
  if (commands.size() % 4 != 0) return wrong(start, "the stream is no whole number of words");
  if (start % kAlignment != 0) return wrong(start, "the stream is not aligned to 16 bytes");
  if (commands.size() > kMostStream) return wrong(start, "the stream is longer than 16 MiB");
  return Error::Ok;
}

}  // namespace

Error read_cop2(Span<const uint8_t> bytes, Cop2* out) {
  if (begins_with(bytes, "COP1")) {
    HIL_LOG(Error,
            "Custom Operator Payload: this is COP1, for bare metal; a driver of Linux takes COP2: "
            "compile with --cop-format=COP2 (direct drive)");
    return Error::NotSupported;
  }
  if (!begins_with(bytes, "COP2")) return wrong(0, "it does not begin so");
  constexpr size_t kLeast = kMetadata + kDescription + kShortestDescription;
  if (bytes.size() < kLeast) return wrong(bytes.size(), "it is cut off");
  const uint8_t* data = bytes.data();
  if (uint32_at(data + 4) != kVersion) return wrong(4, "its version is not 1.0");
  if (uint64_at(data + 8) != bytes.size() - kHeader) return wrong(8, "its length is not its own");
  if (uint32_at(data + kHeader) != kCommands) return wrong(kHeader, "its entry is no commands");
  if (uint32_at(data + kHeader + 4) != bytes.size() - kEntry) {
    return wrong(kHeader + 4, "its entry's length is not its own");
  }
  const size_t metadata = uint32_at(data + kEntry);
  if (metadata < kLeast - kMetadata || metadata > bytes.size() - kMetadata) {
    return wrong(kEntry, "its metadata do not fit");
  }
  HIL_TRY(read_metadata(bytes.sub(kMetadata, metadata), out));
  const size_t start = kMetadata + metadata;
  out->commands = bytes.sub(start, bytes.size() - start);
  return check_stream(out->commands, start);
}

}  // namespace hil::ethosu
