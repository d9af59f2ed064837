// The weight, bias and statistics of norms.
#pragma once

#include "kernels/operator.h"

namespace hil {

/// The floats of a parameter of `count` elements; null when it is absent.
inline Error read_parameter(KernelContext& ctx, const char* name, const Tensor* t, size_t count,
                            const float** elements) {
  if (t == nullptr) return Error::Ok;
  HIL_TRY(check_tensor(ctx, name, *t, ScalarType::Float));
  HIL_TRY(check_numel(ctx, name, *t, count));
  *elements = t->as<float>();
  return Error::Ok;
}

}  // namespace hil
