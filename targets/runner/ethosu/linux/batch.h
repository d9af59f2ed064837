// Which buffers, made in one call, put every tensor at its offset in a region.
//
// The driver makes the buffers of a call one contiguous batch, each rounded up to 16 bytes, and a
// region begins with the first one. Vela orders a region as it likes: so the buffers are asked for
// in the order of the offsets, which is seldom that of the tensors.
#pragma once

#include <cstddef>
#include <vector>

#include "core/error.h"
#include "ethosu/vela_stream.h"

namespace hil::ethosu::linux_driver {

struct Batch {
  static constexpr size_t kNone = SIZE_MAX;  // of a tensor without a byte: the driver has no
                                             // buffers of size 0
  std::vector<size_t> sizes;                 // of the buffers, ascending by offset
  std::vector<size_t> buffer_of;             // by tensor
};

/// Logs which of the `kind` ("input") cannot lie where it has to.
Error plan_batch(const IoTable& tensors, const char* kind, Batch* out);

}  // namespace hil::ethosu::linux_driver
