// Decodes one serialized tensor; every figure in it is checked before use.
#pragma once

#include "core/program.h"
#include "core/tensor.h"

namespace executorch_flatbuffer {
struct Tensor;
}

namespace hil {

/// Shape and type of `source` in `out`, no data. Sizes and dim order stay in the program.
Error decode_shape(const executorch_flatbuffer::Tensor& source, Tensor* out);

/// Points `out` (from decode_shape) at constant or planned storage and copies an initial state.
/// `planned[m - 1]` is the buffer of memory_id m. Data stays null when the program gives no place.
Error bind_storage(const Program& program, const executorch_flatbuffer::Tensor& source,
                   Span<const Span<uint8_t>> planned, Tensor* out);

}  // namespace hil
