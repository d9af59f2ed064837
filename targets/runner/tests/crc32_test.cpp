// The checksum of serial frames, of program images and of values.
#include "core/crc32.h"

#include <doctest/doctest.h>

TEST_CASE("the checksum is that of IEEE 802.3, in one piece or in several") {
  uint8_t digits[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  CHECK(hil::crc32(0, {digits, 9}) == 0xCBF43926u);  // the check value of CRC-32/ISO-HDLC
  CHECK(hil::crc32(hil::crc32(0, {digits, 4}), {digits + 4, 5}) == 0xCBF43926u);
  CHECK(hil::crc32(0, {}) == 0);
  digits[4] ^= 1;
  CHECK(hil::crc32(0, {digits, 9}) != 0xCBF43926u);
}
