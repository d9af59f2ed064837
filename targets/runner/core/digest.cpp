#include "core/digest.h"

#include "core/log.h"

namespace hil {

namespace {

void log_tensor(size_t instruction, size_t place, const Tensor& tensor) {
  const Span<const uint8_t> bytes(tensor.data, tensor.nbytes);
  HIL_LOG(Info, "value_crc32: %zu %zu %zu %08lx", instruction, place, bytes.size(),
          static_cast<unsigned long>(crc32(bytes)));
}

}  // namespace

uint32_t crc32(Span<const uint8_t> bytes) {
  // The reversed polynomial 0xedb88320 (zlib, crc32.c), four bits at a time.
  uint32_t table[16];
  for (uint32_t i = 0; i < 16; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 4; ++bit) {
      table[i] = (table[i] >> 1) ^ ((table[i] & 1) != 0 ? 0xedb88320U : 0);
    }
  }
  uint32_t crc = 0xffffffffU;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    crc = (crc >> 4) ^ table[crc & 15];
    crc = (crc >> 4) ^ table[crc & 15];
  }
  return ~crc;
}

void log_digest(size_t instruction, const Value& written) {
  if (written.tag == Tag::Tensor) {
    log_tensor(instruction, 0, written.tensor);
  } else if (written.tag == Tag::TensorList) {
    for (size_t i = 0; i < written.list.size(); ++i) {
      log_tensor(instruction, i, written.list[i]->tensor);
    }
  }
}

}  // namespace hil
