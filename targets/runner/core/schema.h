// The program's FlatBuffers types. Their asserts stay on where there is a host to show them;
// on a target they would pull in stdio, and the verifier has already proved what they check.
#pragma once

#if !defined(__unix__) && !defined(FLATBUFFERS_ASSERT)
#define FLATBUFFERS_ASSERT(condition) ((void)0)
#endif

#include <program_generated.h>

namespace hil {

/// FlatBuffers' verifier (2.0.8) checks the alignment of a vector's length, not of its elements.
template <typename T>
bool elements_aligned(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr || reinterpret_cast<uintptr_t>(vector->Data()) % sizeof(T) == 0;
}

}  // namespace hil
