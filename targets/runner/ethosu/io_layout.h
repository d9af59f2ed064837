// Tensors of the program to where the NPU has them, and back.
#pragma once

#include "core/error.h"
#include "core/tensor.h"
#include "ethosu/vela_stream.h"

namespace hil::ethosu {

/// True, or logs why `tensor` cannot be input `index` of the command stream.
bool input_fits(const Tensor& tensor, const IoTensor& io, size_t index);
/// The same for an output, whose layout may differ in what copy_output() adjusts.
bool output_fits(const Tensor& tensor, const IoTensor& io, size_t index);

/// Both need the check above to have passed. `to` is where the input begins.
void copy_input(const Tensor& tensor, uint8_t* to);
/// Drops the padding of the last dimension, or expands packed 4-bit to 8-bit elements. `from` is
/// where the output's `io.bytes()` begin.
void copy_output(const uint8_t* from, const IoTensor& io, const Tensor& tensor);
/// True when copy_output() does more than to copy.
inline bool is_adjusted(const Tensor& tensor, const IoTensor& io) {
  return tensor.nbytes != io.bytes();
}

}  // namespace hil::ethosu
