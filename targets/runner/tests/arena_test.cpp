// Arena: the only allocator; a mistake here is memory corruption everywhere else.
#include "core/arena.h"

#include <doctest/doctest.h>

using hil::Arena;

TEST_CASE("allocations are aligned, in order and counted with their padding") {
  alignas(32) uint8_t pool[64];
  Arena arena({pool, sizeof(pool)});
  CHECK(arena.allocate(3, 1) == pool);
  CHECK(arena.allocate(4, 16) == pool + 16);
  CHECK(arena.used() == 20);
  CHECK(arena.allocate(6, 1) == pool + 20);
  CHECK(arena.allocate(1, 16) == pool + 32);
}

TEST_CASE("the last byte can be used, one more cannot") {
  alignas(32) uint8_t pool[32];
  Arena arena({pool, sizeof(pool)});
  CHECK(arena.allocate(33, 1) == nullptr);
  CHECK(arena.allocate(32, 1) == pool);
  CHECK(arena.allocate(1, 1) == nullptr);
  CHECK(arena.allocate(0, 1) == pool + 32);
}

TEST_CASE("sizes near the end of the address space do not wrap around") {
  alignas(32) uint8_t pool[32];
  Arena arena({pool, sizeof(pool)});
  CHECK(arena.allocate(UINT64_MAX) == nullptr);
  CHECK(arena.allocate(UINT64_MAX - 31, 1) == nullptr);
  CHECK(arena.make<uint64_t>(SIZE_MAX / 8).empty());
  CHECK(arena.used() == 0);
}

TEST_CASE("padding that does not fit is not taken") {
  alignas(32) uint8_t pool[32];
  Arena arena({pool, 20});
  REQUIRE(arena.allocate(17, 1) == pool);
  CHECK(arena.allocate(1, 16) == nullptr);  // 15 bytes of padding, and 3 are left
  CHECK(arena.allocate(0, 16) == nullptr);
  CHECK(arena.allocate(UINT64_MAX / 8, 16) == nullptr);
  CHECK(arena.used() == 17);
  CHECK(arena.allocate(3, 1) == pool + 17);
}

TEST_CASE("what fits without its padding, but not with it, is not given") {
  alignas(32) uint8_t pool[32];
  Arena arena({pool, 20});
  REQUIRE(arena.allocate(1, 1) == pool);
  CHECK(arena.allocate(5, 16) == nullptr);  // 19 bytes are left, 15 of them padding
  CHECK(arena.allocate(4, 16) == pool + 16);
}

TEST_CASE("a measuring arena adds up beyond the pool, even without one") {
  Arena measure = Arena::measuring(Arena());
  CHECK(measure.make<uint32_t>(100).size() == 100);
  CHECK(measure.allocate(1000) != nullptr);
  CHECK(measure.used() >= 1400);
}

TEST_CASE("rewind gives space back and keeps the high-water mark") {
  alignas(32) uint8_t pool[32];
  Arena arena({pool, sizeof(pool)});
  arena.allocate(24, 1);
  arena.rewind(8);
  CHECK(arena.used() == 8);
  CHECK(arena.high_water() == 24);
  arena.rewind(16);
  CHECK(arena.used() == 8);
}
