#include "ports/program_image.h"

#include <cstring>

#include "core/crc32.h"

namespace hil {

namespace {

constexpr size_t kSize = 4, kChecksum = 8, kRun = 12, kCommandLine = 28, kCount = 32, kFiles = 36;
constexpr size_t kNameLength = 24, kEntry = kNameLength + 8;

uint32_t word(Span<const uint8_t> bytes, size_t offset) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

bool is_inside(uint32_t offset, uint32_t size, size_t end) {
  return offset <= end && size <= end - offset;
}

}  // namespace

bool ProgramImage::open(Span<const uint8_t> flash) {
  if (flash.size() < kFiles || std::memcmp(flash.data(), "HILI", 4) != 0) return false;
  const uint32_t size = word(flash, kSize);
  if (size < kFiles || size > flash.size()) return false;
  bytes_ = {flash.data(), size};
  const uint32_t count = word(bytes_, kCount), line = word(bytes_, kCommandLine);
  if (crc32(0, {flash.data() + kRun, size - kRun}) != word(bytes_, kChecksum)) return false;
  if (line >= size || std::memchr(flash.data() + line, 0, size - line) == nullptr) return false;
  if (count > (size - kFiles) / kEntry) return false;
  for (uint32_t i = 0; i < count; ++i) {
    const size_t entry = kFiles + i * kEntry;
    if (!is_inside(word(bytes_, entry + kNameLength), word(bytes_, entry + kNameLength + 4),
                   size)) {
      return false;
    }
  }
  return true;
}

const char* ProgramImage::run() const {
  return reinterpret_cast<const char*>(bytes_.data() + kRun);
}

const char* ProgramImage::command_line() const {
  return reinterpret_cast<const char*>(bytes_.data() + word(bytes_, kCommandLine));
}

bool ProgramImage::find(const char* name, Span<const uint8_t>* out) const {
  for (uint32_t i = 0; i < word(bytes_, kCount); ++i) {
    const uint8_t* entry = bytes_.data() + kFiles + i * kEntry;
    if (std::strncmp(reinterpret_cast<const char*>(entry), name, kNameLength) != 0) continue;
    const size_t place = static_cast<size_t>(entry - bytes_.data()) + kNameLength;
    *out = {bytes_.data() + word(bytes_, place), word(bytes_, place + 4)};
    return true;
  }
  return false;
}

}  // namespace hil
