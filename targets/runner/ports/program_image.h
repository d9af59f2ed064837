// A program and its input files in a board's flash, at the address of the file pool: what the host
// flashes there apart from the firmware. All numbers are little-endian:
//   word 0      "HILI"
//   word 1      bytes of the image
//   word 2      CRC-32 of everything behind this word
//   16 bytes    which run the image was made for, in hexadecimal digits
//   word        offset of the command line, which a zero ends
//   word        number of files, and for each a name of 24 bytes, filled with zeros, its offset
//               and its size; a file begins at a multiple of 32 bytes
#pragma once

#include "core/span.h"

namespace hil {

class ProgramImage {
 public:
  /// False when there is no image in `flash`, or when its CRC-32 is not right.
  bool open(Span<const uint8_t> flash);

  static constexpr size_t kRunLength = 16;
  const char* run() const;  // not terminated
  const char* command_line() const;
  /// False for a name that it does not have.
  bool find(const char* name, Span<const uint8_t>* out) const;

 private:
  Span<const uint8_t> bytes_;
};

}  // namespace hil
