// The weight streams of Ethos-U NPUs: slices of Golomb-Rice coded indices and runs of zeros.
#pragma once

#include <cstdint>

#include "jobs.h"

// How many weights ``length`` bytes stand for; the first ``room`` of them are written to ``to``.
// -1: the stream is cut short or malformed; -2: what follows ``room`` weights is not 0.
HIL_NPU_API int64_t hil_npu_decode(const uint8_t* data, int64_t length, int16_t* to, int64_t room);
