// The jobs of a stream, one after another, up to the first one that is not done.
#include "jobs.h"

#include <cstring>
#include <new>

#include "feature_map.h"
#include "output.h"
#include "scratch.h"

namespace hil::npu {
namespace {

constexpr int64_t kWeights = 0;     // the region that nobody writes to
constexpr int64_t kKept = 1 << 24;  // bytes of a block that is kept for the next inference

bool has(const Memory& memory, const Span& span) {
  return span.region >= 0 && span.region < kRegions && memory.base[span.region] != nullptr &&
         span.address >= 0 && span.length >= 0 && span.address <= memory.size[span.region] &&
         span.length <= memory.size[span.region] - span.address;
}

bool is_as_expected(const Job& job, const Memory& memory) {
  for (int64_t n = 0; n < job.spans; ++n) {
    const Span& span = job.span[n];
    if (!has(memory, span) || std::memcmp(memory.base[span.region] + span.address, span.expected,
                                          static_cast<size_t>(span.length)) != 0) {
      return false;
    }
  }
  return true;
}

bool has_parts(const Job& job, const Memory& memory) {
  const Output& output = job.output;
  if (job.bound == 0 || !is_as_expected(job, memory)) {
    return fail(memory, Trouble::kParameters);
  }
  if (!inside(job.first.map, memory, Part::kFirst) ||
      !inside(job.second.map, memory, Part::kSecond) ||
      !inside(job.accumulators.source.map, memory, Part::kInitial)) {
    return false;
  }
  if (output.map.tiles == 0) {
    return true;
  }
  if (output.map.region == kWeights) {
    return fail(memory, Trouble::kReadOnly, Part::kOutput);
  }
  return has_table(output, memory) && inside(output.map, memory, Part::kOutput);
}

bool done(const Job& job, const Memory& memory) {
  memory.fault = {Trouble::kMemory, Part::kNone, 0, 0};
  if (job.kind == Kind::kCopy) {
    return copy(job, memory);
  }
  if (!has_parts(job, memory)) {
    return false;
  }
  return kOperations[static_cast<size_t>(job.kind)](job, memory);
}

void move(Job& job, const Place& place) {
  if (job.kind == Kind::kCopy) {
    job.copy.source = place.address[0];
    job.copy.target = place.address[1];
    return;
  }
  job.first.map.tile[0].base = place.address[0];
  job.second.map.tile[0].base = place.address[1];
  job.output.map.tile[0].base = place.address[2];
}

}  // namespace
}  // namespace hil::npu

// The first place from ``first`` on whose job was not done, and of which nothing was, as the fault
// of the memory says: ``count`` if none.
HIL_NPU_API int64_t hil_npu_run(const hil::npu::Job* jobs, const hil::npu::Place* places,
                                int64_t first, int64_t count, const hil::npu::Memory* memory) {
  hil::npu::Job moved = {};
  int64_t held = -1;  // the job that ``moved`` is a copy of
  for (bool going = true; going && first < count;) {
    const hil::npu::Place& place = places[first];
    const hil::npu::Job* job = &jobs[place.job];
    if (place.moved != 0) {
      if (place.job != held) {
        moved = *job;
        held = place.job;
      }
      hil::npu::move(moved, place);
      job = &moved;
    }
    going = hil::npu::done(*job, *memory);
    memory->pool->release();
    first += going ? 1 : 0;
  }
  memory->pool->trim(hil::npu::kKept);
  return first;
}

// Null when there is no memory.
HIL_NPU_API hil::npu::Pool* hil_npu_open() { return new (std::nothrow) hil::npu::Pool; }
HIL_NPU_API void hil_npu_close(hil::npu::Pool* pool) { delete pool; }

// Bytes of a Job and of a Memory, so that the caller's idea of them can be checked.
HIL_NPU_API int64_t hil_npu_job_bytes() { return sizeof(hil::npu::Job); }
HIL_NPU_API int64_t hil_npu_memory_bytes() { return sizeof(hil::npu::Memory); }
