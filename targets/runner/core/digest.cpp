#include "core/digest.h"

#include "core/crc32.h"
#include "core/log.h"

namespace hil {

namespace {

void log_tensor(size_t instruction, size_t place, const Tensor& tensor) {
  const Span<const uint8_t> bytes(tensor.data, tensor.nbytes);
  HIL_LOG(Info, "value_crc32: %zu %zu %zu %08lx", instruction, place, bytes.size(),
          static_cast<unsigned long>(crc32(0, bytes)));
}

}  // namespace

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
