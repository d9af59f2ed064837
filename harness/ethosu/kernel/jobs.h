// What one operation of the NPU is told: plain numbers, mirrored field by field by jobs.py.
// Lengths are in elements and strides and addresses in bytes, unless a comment says otherwise.
#pragma once

#include <cstdint>

namespace hil::npu {

constexpr int kRegions = 16;  // from 8 on: the U85's chaining buffers
constexpr int kTiles = 4;
constexpr int kSpans = 8;

struct Memory {
  uint8_t* base[kRegions];  // null: there is no such region
  int64_t size[kRegions];
  uint8_t* marks[kRegions];  // null outside of strict mode
  uint8_t* internal;
  int64_t internal_size;
  class Pool* pool;  // memory to work in
};

struct Tile {
  int64_t y, x, height, width, base;
};

struct Map {
  int64_t region, bytes, bricks;  // bytes of an element
  int64_t height, width, depth;
  int64_t stride_y, stride_x, stride_c;
  int64_t tiles;
  Tile tile[kTiles];
};

// An input: a map, or a scalar where the map has no tile.
struct Operand {
  Map map;
  int64_t scalar, zero_point;
  int64_t multiplier, half, shift;  // of elementwise operations
};

struct Window {
  int64_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x;
  int64_t top, left, bottom, right;
  int64_t needed_y, needed_x;  // input rows and columns without padding, after up-scaling
  int64_t upscale;
};

enum class ScaleMode : int64_t { kNarrow, kWide, kAny };
enum class ScaleFor : int64_t { kAll, kChannel, kPosition };

// (value + bias) * multiplier + half >> shift, plus the zero point. ``addend`` is all of it that
// does not depend on the value, before the shift: it may be there unless the mode is kAny. Arrays
// are padded to a multiple of kLanes for kChannel, have kLanes equal entries for kAll and one for
// each position for kPosition; what is read of ``bias`` is kLanes entries even then.
struct Scale {
  ScaleMode mode;
  ScaleFor scope;
  const int64_t* bias;
  const int64_t* multiplier;
  const int64_t* half;
  const int64_t* shift;
  const int64_t* addend;
};

enum class Table : int64_t { kNone, kIndex8, kIndex16 };

struct Output {
  Map map;
  int64_t height, width, depth;  // before the transpose
  int64_t index_bytes;           // of what comes before the table
  int64_t zero_point, clamped, low, high;
  Table table;
  int64_t table_at, table_size;  // bytes in the internal memory
  int64_t axis[3];               // where each stored axis comes from
  int64_t reverse;               // 1 more than the stored axis that runs backwards; 0: none
};

// Bytes that have to be what they were when the job was made.
struct Span {
  int64_t region, address, length;
  const uint8_t* expected;
};

// Output index i is at (i * step + offset) / n of the input.
struct Axis {
  int64_t n, step, offset;
};

struct Resize {
  int64_t bilinear;  // else nearest
  Axis y, x;
};

enum class Kind : int64_t {
  kNone,
  kConvolution,
  kDepthwise,
  kPool,
  kElementwise,
  kCopy,
  kResize,
  kMatrixProduct
};
enum class Reduce : int64_t { kSum, kLargest, kSmallest, kSumOfChannels };
enum class Combine : int64_t {
  kAdd,
  kSubtract,
  kMultiply,
  kSmaller,
  kLarger,
  kAbsolute,
  kLeadingZeros,  // of 32 bits
  kEqual,         // this and the next three: 0 or -1
  kDifferent,
  kNotLess,
  kMore,
  kAnd,
  kOr,
  kExclusiveOr,
  kNot,
  kAndNot
};

struct Job {
  Kind kind;
  int64_t operation;  // Reduce or Combine
  Operand first, second;
  Window window;
  Output output;
  Scale scale;
  int64_t spans;
  Span span[kSpans];
  const int16_t* weights;  // as pack_convolution and pack_depthwise leave them
  int64_t wide;            // sums may need more than 32 bits
  int64_t parts;           // how many threads are worth while
  Span source, target;     // kCopy; a target in region -1 is the internal memory
  Resize resize;
  int64_t most;  // kPool, when not 0: absolute sums are below it, or the job is not done
};

// One operation of a stream: a job as it is, or with other addresses of its maps: first input,
// second one, output; or of both ends of a copy.
struct Place {
  int64_t job;
  int64_t moved;
  int64_t address[3];
};

}  // namespace hil::npu

#define HIL_NPU_API extern "C" __attribute__((visibility("default")))
