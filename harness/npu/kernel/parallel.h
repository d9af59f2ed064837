// Work on several cores.
#pragma once

#include <cstdint>

namespace hil::npu {

// Calls run(context, first, last) for parts of 0..count, ``parts`` at most at a time.
void in_parts(int64_t parts, int64_t count, void (*run)(void*, int64_t, int64_t), void* context);

template <typename Body>
void parallel(int64_t parts, int64_t count, Body body) {
  in_parts(
      parts, count,
      [](void* context, int64_t first, int64_t last) {
        (*static_cast<Body*>(context))(first, last);
      },
      &body);
}

}  // namespace hil::npu
