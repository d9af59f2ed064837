// For comparing every value that a program computes with those of its exported graph.
#pragma once

#include "core/value.h"

namespace hil {

/// Logs "value_crc32: INSTRUCTION PLACE BYTES CRC" for the tensor that an instruction has written;
/// for a list of tensors a line for each, with its place in the list. Nothing for other values.
void log_digest(size_t instruction, const Value& written);

}  // namespace hil
