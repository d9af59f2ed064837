// The U85's fast weight format: a header of 32 bytes, and items of 8, 4 or 2 bits.
#pragma once

#include <cstdint>

#include "jobs.h"

// Room for as many weights as there are items behind the header, whose bytes are all there.
HIL_NPU_API void hil_npu_decode_fast(const uint8_t* encoded, int64_t length, int16_t* to);
