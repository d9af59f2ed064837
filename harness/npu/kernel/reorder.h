// Decoded weights back to (ofm, y, x, ifm): the orders of EthosUWeightOrdering and
// EthosU85WeightOrdering in regor's ethos_u55_weight_encoder.cpp and ethos_u85_weight_encoder.cpp
// (Vela 5.1.0). Where those read no weight they write 0.
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

// What is wrong with the weights; ``whole`` then says nothing.
namespace hil::npu {
enum class Disorder : int64_t {
  kNone,
  kTooFew,   // the stream has too few weights
  kPadding,  // a weight in a padding position is not 0
  kPlaces    // not every place has one weight
};
}  // namespace hil::npu

HIL_NPU_API int64_t hil_npu_reorder_u55(const hil::npu::OrderU55* order, const int16_t* weights,
                                        int64_t count, int16_t* whole);
HIL_NPU_API int64_t hil_npu_reorder_u85(const hil::npu::OrderU85* order,
                                        const int16_t* const* streams, const int64_t* counts,
                                        int16_t* whole);
