// What the products of rows work on.
#pragma once

#include "kernels/requantize.h"

namespace hil {

/// `count` rows of `length` bytes, `stride` bytes apart.
struct ByteRows {
  const int8_t* data;
  size_t stride;
  size_t length;
  size_t count;
};

}  // namespace hil
