// int8 matrices: rows of one times rows of the other.
#pragma once

#include "kernels/requantize.h"

namespace hil {

/// output[m, n] = stage(bias[n] + sum((input[m] + input_offset) * (weights[n] + filter_offset))).
/// One scale serves all: the stage's arrays hold it four times.
struct Matmul {
  size_t rows, inner, channels;
  const int8_t* input;
  const int8_t* weights;
  const int32_t* bias;  // null for none
  int32_t input_offset;
  int32_t filter_offset;
  OutputStage stage;
  int8_t* output;
};

void multiply(const Matmul& m);

}  // namespace hil
