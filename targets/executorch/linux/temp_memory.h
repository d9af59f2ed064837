// Read before executor_runner.cpp: temporary memory, of which kernels and delegates ask for
// pieces, in pages of its own for each. Behind a piece is a page that nobody may touch, so that a
// write beyond it is a fault there and then, and not in the pool's next bytes, which belong to
// nobody until somebody gets them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include <executorch/runtime/core/memory_allocator.h>

namespace hil {

/// As large as ``theirs``, which says what there is no room for. A piece ends where its alignment
/// lets it, so up to that many bytes before the page.
class GuardedMemory final : public executorch::runtime::MemoryAllocator {
 public:
  explicit GuardedMemory(executorch::runtime::MemoryAllocator* theirs)
      : MemoryAllocator(0, nullptr), theirs_(theirs) {}
  ~GuardedMemory() override { release(); }

  void* allocate(size_t size, size_t alignment) override {
    void* const in_pool = theirs_->allocate(size, alignment);
    if (in_pool == nullptr || alignment > page_) return in_pool;
    const size_t wanted = round_up(size, alignment);
    const size_t pages = round_up(wanted, page_);
    void* const mapped =
        ::mmap(nullptr, pages + page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    mappings_.push_back({mapped, pages + page_});
    if (pages > 0 && ::mprotect(mapped, pages, PROT_READ | PROT_WRITE) != 0) return nullptr;
    return static_cast<uint8_t*>(mapped) + pages - wanted;
  }

  void reset() override {
    release();
    theirs_->reset();
  }

 private:
  struct Mapping {
    void* at;
    size_t size;
  };

  static size_t round_up(size_t size, size_t to) { return (size + to - 1) / to * to; }

  void release() {
    for (const Mapping& one : mappings_) ::munmap(one.at, one.size);
    mappings_.clear();
  }

  executorch::runtime::MemoryAllocator* theirs_;
  std::vector<Mapping> mappings_;
  size_t page_ = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
};

/// For the whole run.
inline executorch::runtime::MemoryAllocator* guarded(executorch::runtime::MemoryAllocator* theirs) {
  static GuardedMemory memory(theirs);
  return &memory;
}

}  // namespace hil

// The variable of main that takes method, planned and temporary memory.
#define memory_manager(method, planned, temp) memory_manager(method, planned, hil::guarded(temp))
