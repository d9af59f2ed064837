// Tensors of the program into scratch and back.
#pragma once

#include "core/error.h"
#include "core/tensor.h"
#include "ethosu/vela_stream.h"

namespace hil::ethosu {

/// True, or logs why `tensor` cannot be input `index` of the command stream.
bool input_fits(const Tensor& tensor, const IoTensor& io, size_t index);
/// The same for an output, whose layout may differ in what copy_output() adjusts.
bool output_fits(const Tensor& tensor, const IoTensor& io, size_t index);

/// Both need the check above to have passed. `scratch` is the whole scratch area.
void copy_input(const Tensor& tensor, const IoTensor& io, Span<uint8_t> scratch);
/// Drops the padding of the last dimension, or expands packed 4-bit to 8-bit elements.
void copy_output(Span<const uint8_t> scratch, const IoTensor& io, const Tensor& tensor);

}  // namespace hil::ethosu
