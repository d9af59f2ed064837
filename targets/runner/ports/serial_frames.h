// Lines that a board sends over a serial line, each with a number and a checksum, so that the host
// knows of every byte that was lost or changed:
//   @0003L I [executorch:runner.cpp:90 load()] Method loaded. 80f8edc8
// is the mark, the number in four hexadecimal digits, the kind, a blank, the content, a blank and
// the CRC-32 (IEEE 802.3) of what stands between mark and last blank.
#pragma once

#include "core/span.h"

namespace hil {

enum class FrameKind : char { Begin = 'B', Log = 'L', File = 'F', Exit = 'X' };

class FrameWriter {
 public:
  using Put = void (*)(const char* text, size_t length);
  explicit FrameWriter(Put put) : put_(put) {}

  /// Content without an end of line; what is longer than kMaxContent is cut.
  void send(FrameKind kind, const char* content, size_t length);
  /// A file in frames "name offset size hex".
  void send_file(const char* name, Span<const uint8_t> bytes);

  static constexpr size_t kMaxContent = 400;

 private:
  Put put_;
  unsigned number_ = 0;
};

}  // namespace hil
