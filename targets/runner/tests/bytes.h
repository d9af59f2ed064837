// Bytes of a file that a test makes up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace build {

using Bytes = std::vector<uint8_t>;

/// Bytes at the alignment a Program needs, exactly as long as they are.
class Aligned {
 public:
  explicit Aligned(const Bytes& bytes);
  ~Aligned();
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_;
};

}  // namespace build
