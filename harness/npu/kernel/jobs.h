// The description of one operation of the NPU: plain numbers. kernel_library.py reads the
// structures and enumerations of this file, so each field stands on a line of its own type, and an
// enumeration has no values but its order. Lengths are in elements and strides and addresses in
// bytes, unless a comment says otherwise.
#pragma once

#include <cstdint>

namespace hil::npu {

constexpr int kRegions = 16;  // from 8 on: the U85's chaining buffers
constexpr int kTiles = 4;
constexpr int kSpans = 8;

// Why a job was not done. Nothing of it was written then.
enum class Trouble : int64_t {
  kMemory,       // there is no memory to work in
  kRegion,       // the part's region does not exist
  kBounds,       // the part reaches from ``low`` to ``high``, beyond its region
  kReadOnly,     // the part is written to and in the weights
  kAccumulator,  // a sum needs more bits than the accumulators have
  kDivisor,      // a division by zero
  kIndex,        // an index of a DMA is outside of 0 to the largest
  kParameters    // weights and scales are not those that the job was bound to
};
enum class Part : int64_t {
  kNone,
  kFirst,
  kSecond,
  kInitial,
  kOutput,
  kTable,
  kSource,
  kTarget,
  kInternal,
  kIndices
};

struct Fault {
  Trouble trouble;
  Part part;
  int64_t low, high;
};

struct Memory {
  uint8_t* base[kRegions];  // null: there is no such region
  int64_t size[kRegions];
  uint8_t* marks[kRegions];  // null outside of strict mode
  uint8_t* internal;
  int64_t internal_size;
  int64_t* kept;              // accumulators for the next operation
  int64_t kept_size;          // how many there is room for
  class Pool* pool;           // memory to work in
  mutable Fault fault;        // of the job that was not done
  mutable int64_t condition;  // whether the last result was not 0; -1: it was not one element
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

// The accumulators: what the sums start from, and what becomes of them.
enum class Initial : int64_t { kZero, kKept, kMap };

struct Accumulators {
  Initial initial;
  Operand source;  // for kMap
  int64_t keeps;   // they are kept for the next operation
  int64_t most;    // when not 0: absolute sums must be below it
};

// A DMA of planes of rows. Source and target are the regions and addresses of the first row.
enum class Indexed : int64_t { kNone, kGather, kScatter };

struct Copy {
  int64_t length, rows, planes;
  int64_t source_region, source, source_row, source_plane;
  int64_t internal;  // the target is the NPU's own memory
  int64_t target_region, target, target_row, target_plane;
  Indexed indexed;
  int64_t index_region, indices, largest_index;  // 32 bits for each row
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
  kConvolution,
  kDepthwise,
  kPool,
  kElementwise,
  kCopy,
  kResize,
  kMatrixProduct
};
enum class Pooling : int64_t { kMax, kAverage, kReduceSum, kSum, kNone, kMin };
enum class Combine : int64_t {
  kMul,
  kAdd,
  kSub,
  kMin,
  kMax,
  kAbs,
  kClz,  // of 32 bits
  kShr,
  kShl,    // the low ``bits`` of the result, with their sign
  kLsr,    // of the low ``bits`` of the first operand
  kDiv,    // toward zero
  kCmpEq,  // this and the next three: 0 or -1
  kCmpNe,
  kCmpGe,
  kCmpGt,
  kAnd,
  kOr,
  kXor,
  kNot,
  kAndNot
};

struct Job {
  Kind kind;
  Pooling pooling;
  Combine combine;
  int64_t bits, halves;  // of the operands of a shift; whether kShr rounds up
  Operand first, second;
  Window window;
  Output output;
  Scale scale;
  Accumulators accumulators;
  int64_t bound;  // 0: weights and scales have to be bound first
  int64_t spans;
  Span span[kSpans];
  const int16_t* weights;  // as hil_npu_pack leaves them
  int64_t wide;  // 1: sums may need more than 32 bits; 2: sums of 8-bit parts of the input too
  Copy copy;
  Resize resize;
};

// One operation of a stream: a job as it is, or with other addresses of its maps: first input,
// second one, output; or of both ends of a copy.
struct Place {
  int64_t job;
  int64_t moved;
  int64_t address[3];
};

// What does a job; false: it was not done, nothing was written. In the order of Kind.
using Operation = bool(const Job& job, const Memory& memory);
Operation convolve, convolve_depthwise, pool, elementwise, copy, resize, matrix_product;
constexpr Operation* kOperations[] = {convolve, convolve_depthwise, pool, elementwise, copy,
                                      resize,   matrix_product};

}  // namespace hil::npu

#define HIL_NPU_API extern "C" __attribute__((visibility("default")))
