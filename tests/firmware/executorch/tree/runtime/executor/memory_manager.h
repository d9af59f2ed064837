// Whose memory a method takes.
#pragma once

#include "../core/memory_allocator.h"

namespace executorch::runtime {

/// What a delegate may have until its execution ends.
inline MemoryAllocator*& temp_memory() {
  static MemoryAllocator* memory = nullptr;
  return memory;
}

class MemoryManager final {
 public:
  MemoryManager(MemoryAllocator* method, MemoryAllocator* planned, MemoryAllocator* temp) {
    (void)method;
    (void)planned;
    temp_memory() = temp;
  }
};

}  // namespace executorch::runtime
