#include "core/arena.h"

namespace hil {

Arena Arena::measuring(const Arena& other) {
  Arena arena = other;
  arena.measuring_ = true;
  return arena;
}

void* Arena::allocate(uint64_t bytes, size_t alignment) {
  const uintptr_t next = reinterpret_cast<uintptr_t>(base_) + static_cast<uintptr_t>(used_);
  const uint64_t padding = (alignment - (next & (alignment - 1))) & (alignment - 1);
  constexpr uint64_t kLimit = UINT64_MAX / 4;
  if (bytes > kLimit || used_ > kLimit) return nullptr;
  if (!measuring_ && (padding > available() || bytes > available() - padding)) return nullptr;
  used_ += padding + bytes;
  if (used_ > high_water_) high_water_ = used_;
  const uintptr_t place = next + static_cast<uintptr_t>(padding);
  // Without a pool there is no address to tell from "does not fit".
  return reinterpret_cast<void*>(measuring_ && place == 0 ? alignment : place);
}

void Arena::rewind(uint64_t mark) {
  if (mark < used_) used_ = mark;
}

}  // namespace hil
