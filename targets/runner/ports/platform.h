// What the runner needs from the machine it runs on. Each port defines all of it.
#pragma once

#include "core/arena.h"
#include "core/error.h"

namespace hil::platform {

struct Pools {
  Span<uint8_t> method;  // values, instructions, planned buffers
  Span<uint8_t> temp;    // empty again after every instruction
  Span<uint8_t> files;   // the program and its inputs
};
Pools pools();

/// Writes one whole log line.
void write_log(const char* text, size_t length);

/// A whole file: read into `pool`, or where it lies if that is memory. NotFound, AccessFailed, or
/// MemoryAllocationFailed with the file's size in `*size`.
Error read_file(const char* path, Arena& pool, Span<const uint8_t>* out, uint64_t* size);

/// Creates or replaces a file; true only when every byte was written and the file closed.
bool write_file(const char* path, Span<const uint8_t> bytes);

/// A counter that runs while the program does; null when the machine has none.
using Clock = uint64_t (*)();
Clock clock();

struct StackUse {
  size_t high_water = 0;
  size_t total = 0;  // 0: not measured
};
StackUse stack_use();

/// The most bytes of memory that the process has had at a time; 0 where nobody counts.
uint64_t peak_resident();

/// The linker's build id (note NT_GNU_BUILD_ID), empty when there is none.
Span<const uint8_t> build_id();

}  // namespace hil::platform
