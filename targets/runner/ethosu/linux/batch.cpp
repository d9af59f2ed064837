#include "ethosu/linux/batch.h"

#include <algorithm>

#include "core/log.h"

namespace hil::ethosu::linux_driver {

namespace {

constexpr size_t kAlignment = 16;

}  // namespace

Error plan_batch(const IoTable& tensors, const char* kind, Batch* out) {
  std::vector<size_t> order;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].bytes() > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return tensors[a].offset < tensors[b].offset; });
  out->buffer_of.assign(tensors.size(), Batch::kNone);
  size_t end = 0;
  for (size_t i : order) {
    const IoTensor io = tensors[i];
    if (io.offset != end) {
      HIL_LOG(Error, "Ethos-U %s %zu begins at byte %zu of its region, the driver's buffer at %zu",
              kind, i, io.offset, end);
      return Error::NotSupported;
    }
    out->buffer_of[i] = out->sizes.size();
    out->sizes.push_back(io.bytes());
    end += (io.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  return Error::Ok;
}

}  // namespace hil::ethosu::linux_driver
