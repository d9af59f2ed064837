// The adjustments are those of ExecuTorch's backends/arm/runtime (EthosUBackend, 1.x).
#include "ethosu/io_layout.h"

#include "core/log.h"
#include "ethosu/io_memcpy.h"

namespace hil::ethosu {

namespace {

/// Element types the NPU takes from the program.
bool is_input_type(ScalarType type) {
  switch (type) {
    case ScalarType::Byte:
    case ScalarType::Char:
    case ScalarType::Bool:
    case ScalarType::Short:
    case ScalarType::Int:
      return true;
    default:
      return false;
  }
}

enum class Layout { Same, Padded, Packed4Bit, Impossible };

/// How the bytes of `io` become those of `tensor`. Chunks are rows of the last dimension.
Layout output_layout(const Tensor& tensor, const IoTensor& io) {
  if (!is_adjusted(tensor, io)) return Layout::Same;
  if (io.chunks == 0 || io.chunk_bytes == 0 || tensor.nbytes % io.chunks != 0) {
    return Layout::Impossible;
  }
  const size_t chunk = tensor.nbytes / io.chunks;
  if (chunk % io.element_size != 0) return Layout::Impossible;
  if (chunk < io.chunk_bytes) return Layout::Padded;
  const bool expands = tensor.type == ScalarType::Char && chunk == 2 * io.chunk_bytes;
  return expands ? Layout::Packed4Bit : Layout::Impossible;
}

bool has_data(const Tensor& tensor, const char* kind, size_t index) {
  if (tensor.data != nullptr || tensor.nbytes == 0) return true;
  HIL_LOG(Error, "Ethos-U %s %zu has no data", kind, index);
  return false;
}

bool same_element_size(const Tensor& tensor, const IoTensor& io, const char* kind, size_t index) {
  const size_t size = element_size(tensor.type);
  if (size == io.element_size) return true;
  HIL_LOG(Error, "Ethos-U %s %zu: element size mismatch: tensor %zu, Vela %zu", kind, index, size,
          io.element_size);
  return false;
}

/// In place: the packed bytes are moved to the end of where their elements go, low half first.
void expand_4bit(const uint8_t* source, size_t bytes, uint8_t* out) {
  uint8_t* packed = out + bytes;
  arm_ethos_io_memcpy(packed, source, bytes);
  for (size_t i = 0; i < bytes; ++i) {
    const unsigned pair = packed[i];
    out[2 * i] = static_cast<uint8_t>(((pair & 15u) ^ 8u) - 8u);
    out[2 * i + 1] = static_cast<uint8_t>(((pair >> 4) ^ 8u) - 8u);
  }
}

}  // namespace

bool input_fits(const Tensor& tensor, const IoTensor& io, size_t index) {
  if (!has_data(tensor, "input", index)) return false;
  if (!is_input_type(tensor.type)) {
    HIL_LOG(Error, "Ethos-U input %zu: scalar type %d is not an integer of at most 32 bits", index,
            static_cast<int>(tensor.type));
    return false;
  }
  if (!same_element_size(tensor, io, "input", index)) return false;
  if (tensor.nbytes == io.bytes()) return true;
  HIL_LOG(Error, "Ethos-U input %zu: byte size mismatch: tensor %zu, Vela %zu", index,
          tensor.nbytes, io.bytes());
  return false;
}

bool output_fits(const Tensor& tensor, const IoTensor& io, size_t index) {
  if (!has_data(tensor, "output", index)) return false;
  if (tensor.constant) {
    HIL_LOG(Error, "Ethos-U output %zu is a constant", index);
    return false;
  }
  if (!same_element_size(tensor, io, "output", index)) return false;
  if (output_layout(tensor, io) != Layout::Impossible) return true;
  HIL_LOG(Error, "Ethos-U output %zu: %zu bytes cannot be made of %zu rows of %zu bytes", index,
          tensor.nbytes, io.chunks, io.chunk_bytes);
  return false;
}

void copy_input(const Tensor& tensor, uint8_t* to) {
  if (tensor.nbytes > 0) arm_ethos_io_memcpy(to, tensor.data, tensor.nbytes);
}

void copy_output(const uint8_t* from, const IoTensor& io, const Tensor& tensor) {
  if (tensor.nbytes == 0) return;
  const Layout layout = output_layout(tensor, io);
  if (layout == Layout::Same) {
    arm_ethos_io_memcpy(tensor.data, from, tensor.nbytes);
    return;
  }
  if (layout == Layout::Impossible) return;
  const size_t chunk = tensor.nbytes / io.chunks;
  for (size_t i = 0; i < io.chunks; ++i) {
    const uint8_t* row = from + i * io.chunk_bytes;
    uint8_t* out = tensor.data + i * chunk;
    if (layout == Layout::Padded) {
      arm_ethos_io_memcpy(out, row, chunk);
    } else {
      expand_4bit(row, io.chunk_bytes, out);
    }
  }
}

}  // namespace hil::ethosu
