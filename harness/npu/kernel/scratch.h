// Memory to work in, kept from one job to the next: fresh pages cost more than what is done in
// them.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace hil::npu {

class Pool {
 public:
  Pool() = default;
  ~Pool() { trim(0); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Aligned for any vector, with room for one more behind it; null when there is none.
  void* take(int64_t bytes) {
    if (taken_ == kBlocks) {
      return nullptr;
    }
    Block& block = blocks_[taken_];
    const int64_t size = (bytes + 4 * kAlign) / kAlign * kAlign;
    if (block.size < size) {
      std::free(block.data);
      block.data = std::aligned_alloc(kAlign, static_cast<size_t>(size));
      block.size = block.data == nullptr ? 0 : size;
    }
    if (block.data != nullptr) {
      ++taken_;
    }
    return block.data;
  }

  // The job is over.
  void release() { taken_ = 0; }

  // Keeps no block that is larger.
  void trim(int64_t most) {
    for (Block& block : blocks_) {
      if (block.size > most) {
        std::free(block.data);
        block = {};
      }
    }
  }

 private:
  static constexpr int kBlocks = 8;
  static constexpr int64_t kAlign = 64;
  struct Block {
    void* data = nullptr;
    int64_t size = 0;
  };
  Block blocks_[kBlocks];
  int taken_ = 0;
};

// ``count`` elements of the pool, until the job is over; null when there is no memory.
template <typename Element>
class Scratch {
 public:
  Scratch(Pool& pool, int64_t count)
      : data_(static_cast<Element*>(pool.take(count * static_cast<int64_t>(sizeof(Element))))) {}

  Element* data() const { return data_; }

 private:
  Element* data_;
};

}  // namespace hil::npu
