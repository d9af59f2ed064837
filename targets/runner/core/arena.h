// A fixed pool handed out front to back; nothing is ever freed one by one.
#pragma once

#include <new>

#include "core/span.h"

namespace hil {

class Arena {
 public:
  static constexpr size_t kAlignment = 16;

  Arena() = default;
  explicit Arena(Span<uint8_t> pool) : base_(pool.data()), capacity_(pool.size()) {}
  /// An arena without memory that only adds up what placing things in `other`
  /// would need. Its allocations must not be dereferenced.
  static Arena measuring(const Arena& other);

  /// Null when the pool is exhausted. `alignment` is a power of two.
  void* allocate(uint64_t bytes, size_t alignment = kAlignment);

  /// `count` value-initialised elements; an empty span when they do not fit.
  template <typename T>
  Span<T> make(size_t count) {
    void* memory = allocate(static_cast<uint64_t>(count) * sizeof(T), alignof(T));
    if (memory == nullptr) return {};
    T* items = static_cast<T*>(memory);
    if (!measuring_) {
      for (size_t i = 0; i < count; ++i) new (items + i) T();
    }
    return Span<T>(items, count);
  }

  size_t capacity() const { return capacity_; }
  bool is_measuring() const { return measuring_; }
  uint64_t used() const { return used_; }
  uint64_t available() const { return capacity_ - used_; }
  uint64_t high_water() const { return high_water_; }

  /// Gives back everything allocated since used() was `mark`.
  void rewind(uint64_t mark);

 private:
  uint8_t* base_ = nullptr;
  size_t capacity_ = 0;
  uint64_t used_ = 0;
  uint64_t high_water_ = 0;
  bool measuring_ = false;
};

}  // namespace hil
