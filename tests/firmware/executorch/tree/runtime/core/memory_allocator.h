// Pieces of a pool, one after another, until all are given back.
#pragma once

#include <cstddef>
#include <cstdint>

namespace executorch::runtime {

class MemoryAllocator {
 public:
  MemoryAllocator(uint32_t size, uint8_t* base) : base_(base), size_(size) {}
  virtual ~MemoryAllocator() = default;

  /// Null when there is no room. ``alignment`` is a power of two.
  virtual void* allocate(size_t size, size_t alignment) {
    const size_t start = (used_ + alignment - 1) / alignment * alignment;
    if (base_ == nullptr || start > size_ || size > size_ - start) return nullptr;
    used_ = start + size;
    return base_ + start;
  }
  virtual void reset() { used_ = 0; }

 private:
  uint8_t* base_;
  size_t size_;
  size_t used_ = 0;
};

}  // namespace executorch::runtime
