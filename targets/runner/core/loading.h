// What the parts of the method loader share.
#pragma once

#include "core/log.h"
#include "core/method_loader.h"
#include "core/schema.h"

namespace hil {

namespace fb = executorch_flatbuffer;

namespace loading {

inline Error invalid(const char* what) {
  HIL_LOG(Error, "invalid program: %s", what);
  return Error::InvalidProgram;
}

template <typename Vector>
size_t length(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

/// Number of list items of a value, 0 for anything that is no list of references.
inline size_t list_length(const fb::EValue& value) {
  switch (value.val_type()) {
    case fb::KernelTypes_IntList:
      return length(value.val_as_IntList()->items());
    case fb::KernelTypes_TensorList:
      return length(value.val_as_TensorList()->items());
    case fb::KernelTypes_OptionalTensorList:
      return length(value.val_as_OptionalTensorList()->items());
    default:
      return 0;
  }
}

}  // namespace loading

}  // namespace hil
