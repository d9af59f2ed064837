// Whose arithmetic the kernels follow where ExecuTorch's C++ (with CMSIS-NN) and its Python
// definitions differ: what CMake's HIL_ARITHMETIC says.
#pragma once

#include "hil_options.h"

namespace hil {

constexpr bool kFollowsPython = HIL_FOLLOWS_PYTHON;

}  // namespace hil
