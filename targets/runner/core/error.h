// Error codes, with the values and names ExecuTorch gives them
// (executorch/runtime/core/error.h, v1.5.1).
#pragma once

#include <cstdint>

namespace hil {

/// Whoever is given one acts on it: the compiler refuses to drop it.
enum class [[nodiscard]] Error : uint32_t{
    Ok = 0x00,
    Internal = 0x01,
    InvalidState = 0x02,
    EndOfMethod = 0x03,
    AlreadyLoaded = 0x04,
    NotSupported = 0x10,
    NotImplemented = 0x11,
    InvalidArgument = 0x12,
    InvalidType = 0x13,
    OperatorMissing = 0x14,
    RegistrationExceedingMaxKernels = 0x15,
    RegistrationAlreadyRegistered = 0x16,
    NotFound = 0x20,
    MemoryAllocationFailed = 0x21,
    AccessFailed = 0x22,
    InvalidProgram = 0x23,
    InvalidExternalData = 0x24,
    OutOfResources = 0x25,
    DelegateInvalidCompatibility = 0x30,
    DelegateMemoryAllocationFailed = 0x31,
    DelegateInvalidHandle = 0x32,
};

/// The code's name as ExecuTorch spells it ("OperatorMissing"), or "Unknown".
const char* error_name(Error error);

/// Leaves the enclosing function when an expression does not give Error::Ok.
#define HIL_TRY(expression)                                                         \
  do {                                                                              \
    if (const ::hil::Error hil_error = (expression); hil_error != ::hil::Error::Ok) \
      return hil_error;                                                             \
  } while (false)

}  // namespace hil
