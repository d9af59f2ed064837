#include "ports/serial_frames.h"

#include <cstring>

#include "core/crc32.h"
#include "core/format.h"

namespace hil {

namespace {

constexpr size_t kBytesPerFrame = 64;
constexpr size_t kHead = 7;   // "@0003L "
constexpr size_t kTail = 10;  // " 80f8edc8\n"

Span<const uint8_t> bytes_of(const char* text, size_t length) {
  return {reinterpret_cast<const uint8_t*>(text), length};
}

}  // namespace

void FrameWriter::send(FrameKind kind, const char* content, size_t length) {
  static char line[kHead + kMaxContent + kTail + 1];
  if (length > kMaxContent) length = kMaxContent;
  format_to(line, kHead + 1, "@%04x%c ", number_++ & 0xFFFF, static_cast<char>(kind));
  std::memcpy(line + kHead, content, length);
  const size_t end = kHead + length;
  const uint32_t crc = crc32(0, bytes_of(line + 1, end - 1));
  format_to(line + end, kTail + 1, " %08x\n", static_cast<unsigned>(crc));
  put_(line, end + kTail);
}

void FrameWriter::send_file(const char* name, Span<const uint8_t> bytes) {
  char content[kMaxContent];
  size_t offset = 0;
  do {
    const size_t left = bytes.size() - offset;
    const size_t count = left < kBytesPerFrame ? left : kBytesPerFrame;
    size_t length =
        format_to(content, sizeof(content), "%.200s %zu %zu ", name, offset, bytes.size());
    for (size_t i = 0; i < count; ++i) {
      length += format_to(content + length, 3, "%02x", bytes[offset + i]);
    }
    send(FrameKind::File, content, length);
    offset += count;
  } while (offset < bytes.size());
}

}  // namespace hil
