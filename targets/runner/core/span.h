// A pointer that knows how many elements it may touch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hil {

template <typename T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(T* data, size_t size) : data_(data), size_(size) {}

  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T& operator[](size_t i) const { return data_[i]; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }

  /// Elements [offset, offset + count), or an empty span when they do not all exist.
  constexpr Span sub(size_t offset, size_t count) const {
    return (offset > size_ || count > size_ - offset) ? Span() : Span(data_ + offset, count);
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hil
