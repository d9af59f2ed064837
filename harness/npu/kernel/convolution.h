// Sums of products, exact in 32 bits because the job's maker has bounded them, or in 64.
#pragma once

#include "jobs.h"

// Elements of ``packed`` for weights of this shape.
HIL_NPU_API int64_t hil_npu_packed(int64_t depthwise, int64_t ofm, int64_t elements, int64_t ifm);

// Weights (ofm, kernel element, ifm; ``pitch`` from one element to the next) in the order in which
// they are used. The largest sum of absolute weights of one output channel.
HIL_NPU_API int64_t hil_npu_pack(int64_t depthwise, const int16_t* weights, int64_t pitch,
                                 int64_t ofm, int64_t elements, int64_t ifm, int16_t* packed);
