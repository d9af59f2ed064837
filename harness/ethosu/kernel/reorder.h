// Decoded weights back to (ofm, y, x, ifm): the orders of u55/weights.py and u85/weights.py.
#pragma once

#include <cstdint>

#include "jobs.h"

namespace hil::npu {

struct OrderU55 {
  int64_t depth, height, width, ifm_depth;  // of the weights of one core
  int64_t ofm_block, ofm_unit, ifm_block, ifm_units;
  int64_t step_y, step_x;  // of sub-kernels
  int64_t rounding;        // of the elements of one
  int64_t form;            // 0 depth first, 1 part-kernel, 2 depthwise
  int64_t channel_stride;  // elements from one of this core's channels to the next
};

struct OrderU85 {
  int64_t depth, height, width, ifm_depth;
  int64_t ofm_block, ofm_unit, ifm_block, ifm_unit;
  int64_t step_y, step_x;     // of sub-kernels
  int64_t phase_y, phase_x;   // strides between which elements take turns
  int64_t rounding, padding;  // elements of a group, and rows of zeros after it
  int64_t ifm_step, streams;
};

}  // namespace hil::npu

// False: weights are missing, one in a padding position is not 0, or not every place has one
// weight;
// ``whole`` then says nothing.
HIL_NPU_API bool hil_npu_reorder_u55(const hil::npu::OrderU55* order, const int16_t* weights,
                                     int64_t count, int16_t* whole);
HIL_NPU_API bool hil_npu_reorder_u85(const hil::npu::OrderU85* order, const int16_t* const* streams,
                                     const int64_t* counts, bool to_the_end, int16_t* whole);
