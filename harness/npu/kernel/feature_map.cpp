#include "feature_map.h"

#include <algorithm>
#include <cstring>

#include "scratch.h"
#include "vectors.h"
#include "wrapping.h"

namespace hil::npu {
namespace {

constexpr int64_t kBrick = 16;

int64_t bricks_of(const Map& map) { return (map.depth + kBrick - 1) / kBrick; }

template <typename From, typename To>
inline void convert_brick(const uint8_t* from, To* to, To zero_point) {
  typedef From Stored __attribute__((vector_size(kBrick * sizeof(From))));
  typedef To Read __attribute__((vector_size(kBrick * sizeof(To))));
  typedef std::make_unsigned_t<To> Bits __attribute__((vector_size(kBrick * sizeof(To))));
  const Read read = __builtin_convertvector(load<Stored>(from), Read);
  store(to, reinterpret_cast<Bits>(read) - static_cast<std::make_unsigned_t<To>>(zero_point));
}

template <typename From, typename To>
inline void convert(const uint8_t* from, To* to, int64_t count, To zero_point) {
  constexpr int64_t kSize = sizeof(From);
  int64_t n = 0;
  for (; n + kBrick <= count; n += kBrick) {
    convert_brick<From, To>(from + n * kSize, to + n, zero_point);
  }
  for (; n < count; ++n) {
    to[n] = static_cast<To>(wrapped_difference(static_cast<int64_t>(load<From>(from + n * kSize)),
                                               int64_t{zero_point}));
  }
}

template <typename From, typename To>
void read_tile(const Map& map, const Tile& tile, const uint8_t* row, To zero_point, To* out,
               int64_t pitch) {
  constexpr int64_t kSize = sizeof(From);
  if (map.bricks == 0) {
    if (map.stride_x == map.depth * kSize && pitch == map.depth) {
      convert<From, To>(row, out, tile.width * map.depth, zero_point);
      return;
    }
    for (int64_t x = 0; x < tile.width; ++x) {
      convert<From, To>(row + x * map.stride_x, out + x * pitch, map.depth, zero_point);
    }
    return;
  }
  const int64_t full = map.depth / kBrick, stride = map.stride_c;
  const int64_t rest = map.depth - full * kBrick;
  for (int64_t x = 0; x < tile.width; ++x) {
    const uint8_t* from = row + x * kBrick * kSize;
    To* to = out + x * pitch;
    for (int64_t brick = 0; brick < full; ++brick) {
      convert_brick<From, To>(from + brick * stride, to + brick * kBrick, zero_point);
    }
    convert<From, To>(from + full * stride, to + full * kBrick, rest, zero_point);
  }
}

// Where a stored element comes from in the packed results.
struct Source {
  const uint8_t* data;
  int64_t step[3];
  int64_t bytes;

  const uint8_t* at(int64_t y, int64_t x) const { return data + y * step[0] + x * step[1]; }
};

Source source_of(const Output& output, const uint8_t* results) {
  const int64_t bytes = output.map.bytes;
  const int64_t packed[3] = {output.width * output.depth * bytes, output.depth * bytes, bytes};
  const int64_t shape[3] = {output.map.height, output.map.width, output.map.depth};
  Source source{results, {}, bytes};
  for (int axis = 0; axis < 3; ++axis) {
    source.step[axis] = packed[output.axis[axis]];
    if (output.reverse == axis + 1) {
      source.data += (shape[axis] - 1) * source.step[axis];
      source.step[axis] = -source.step[axis];
    }
  }
  return source;
}

template <typename Element>
void copy_apart(const uint8_t* from, int64_t step, uint8_t* to, int64_t count) {
  for (int64_t n = 0; n < count; ++n) {
    store(to + n * static_cast<int64_t>(sizeof(Element)), load<Element>(from + n * step));
  }
}

void copy(const Source& source, const uint8_t* from, uint8_t* to, int64_t count) {
  if (source.step[2] == source.bytes) {
    std::memcpy(to, from, static_cast<size_t>(count * source.bytes));
  } else if (source.bytes == 1) {
    copy_apart<int8_t>(from, source.step[2], to, count);
  } else if (source.bytes == 2) {
    copy_apart<int16_t>(from, source.step[2], to, count);
  } else if (source.bytes == 4) {
    copy_apart<int32_t>(from, source.step[2], to, count);
  } else {
    copy_apart<int64_t>(from, source.step[2], to, count);
  }
}

void write_row(const Map& map, const Tile& tile, const Source& source, int64_t y, uint8_t* row) {
  const int64_t bytes = map.bytes;
  if (map.bricks == 0) {
    const bool dense = map.stride_x == map.depth * bytes && source.step[2] == bytes &&
                       source.step[1] == map.depth * bytes;
    if (dense) {
      std::memcpy(row, source.at(y, tile.x), static_cast<size_t>(tile.width * map.depth * bytes));
      return;
    }
    for (int64_t x = 0; x < tile.width; ++x) {
      copy(source, source.at(y, tile.x + x), row + x * map.stride_x, map.depth);
    }
    return;
  }
  for (int64_t brick = 0; brick < bricks_of(map); ++brick) {
    const int64_t count = std::min(kBrick, map.depth - brick * kBrick);
    uint8_t* to = row + brick * map.stride_c;
    if (count == kBrick && bytes == 1 && source.step[2] == 1) {
      const uint8_t* from = source.at(y, tile.x) + brick * kBrick;
      for (int64_t x = 0; x < tile.width; ++x) {
        std::memcpy(to + x * kBrick, from + x * source.step[1], kBrick);
      }
      continue;
    }
    for (int64_t x = 0; x < tile.width; ++x) {
      const uint8_t* from = source.at(y, tile.x + x) + brick * kBrick * source.step[2];
      copy(source, from, to + x * kBrick * bytes, count);
    }
  }
}

// Whole bricks.
void mark_row(const Map& map, const Tile& tile, uint8_t* row) {
  if (map.bricks == 0) {
    for (int64_t x = 0; x < tile.width; ++x) {
      std::memset(row + x * map.stride_x, 1, static_cast<size_t>(map.depth * map.bytes));
    }
    return;
  }
  for (int64_t brick = 0; brick < bricks_of(map); ++brick) {
    std::memset(row + brick * map.stride_c, 1,
                static_cast<size_t>(tile.width * kBrick * map.bytes));
  }
}

}  // namespace

bool fail(const Memory& memory, Trouble trouble, Part part, int64_t low, int64_t high) {
  memory.fault = {trouble, part, low, high};
  return false;
}

bool inside(const Map& map, const Memory& memory, Part part) {
  if (map.tiles == 0) {
    return true;
  }
  if (map.region < 0 || map.region >= kRegions || memory.base[map.region] == nullptr) {
    return fail(memory, Trouble::kRegion, part);
  }
  for (int64_t n = 0; n < map.tiles; ++n) {
    const Tile& tile = map.tile[n];
    const bool bricks = map.bricks != 0;
    const int64_t reach[4] = {
        (tile.height - 1) * map.stride_y,
        (tile.width - 1) * (bricks ? kBrick * map.bytes : map.stride_x),
        bricks ? (bricks_of(map) - 1) * map.stride_c : 0,
        ((bricks ? kBrick : map.depth) - 1) * map.bytes,
    };
    int64_t low = tile.base, high = tile.base + map.bytes;
    for (const int64_t r : reach) {
      low += std::min<int64_t>(r, 0);
      high += std::max<int64_t>(r, 0);
    }
    if (low < 0 || high > memory.size[map.region]) {
      return fail(memory, Trouble::kBounds, part, low, high);
    }
  }
  return true;
}

template <typename To>
void read_row(const Map& map, const Memory& memory, int64_t y, int64_t zero_point, To* out,
              int64_t pitch) {
  const auto zero = static_cast<To>(zero_point);
  for (int64_t n = 0; n < map.tiles; ++n) {
    const Tile& tile = map.tile[n];
    if (y < tile.y || y >= tile.y + tile.height) {
      continue;
    }
    const uint8_t* row = memory.base[map.region] + tile.base + (y - tile.y) * map.stride_y;
    To* to = out + tile.x * pitch;
    if (map.bytes == 1) {
      read_tile<int8_t, To>(map, tile, row, zero, to, pitch);
    } else if (map.bytes == 2) {
      read_tile<int16_t, To>(map, tile, row, zero, to, pitch);
    } else if (map.bytes == 4) {
      read_tile<int32_t, To>(map, tile, row, zero, to, pitch);
    } else {
      read_tile<int64_t, To>(map, tile, row, zero, to, pitch);
    }
  }
}

template void read_row(const Map&, const Memory&, int64_t, int64_t, int16_t*, int64_t);
template void read_row(const Map&, const Memory&, int64_t, int64_t, int32_t*, int64_t);
template void read_row(const Map&, const Memory&, int64_t, int64_t, int64_t*, int64_t);

int64_t padded_rows(const Window& window) { return window.top + window.needed_y + window.bottom; }

int64_t padded_columns(const Window& window) {
  return window.left + window.needed_x + window.right;
}

template <typename To>
bool read_padded(const Job& job, const Memory& memory, To fill, Padded<To>& out) {
  const Window& window = job.window;
  const Map& map = job.first.map;
  const int64_t row = out.columns * out.pitch;
  const int64_t source = window.upscale == 0 ? 0 : map.width * out.pitch;
  Scratch<To> line(*memory.pool, source);
  if (line.data() == nullptr) {
    return false;
  }
  std::fill(line.data(), line.data() + source, To{0});
  std::fill(out.data, out.data + window.top * row, fill);
  for (int64_t y = 0; y < window.needed_y; ++y) {
    To* to = out.data + (window.top + y) * row;
    std::fill(to, to + window.left * out.pitch, fill);
    To* body = to + window.left * out.pitch;
    std::fill(body + window.needed_x * out.pitch, to + row, fill);
    if (window.upscale == 0) {
      for (int64_t x = 0; x < map.width && out.pitch != map.depth; ++x) {
        std::fill(body + x * out.pitch + map.depth, body + (x + 1) * out.pitch, To{0});
      }
      read_row(map, memory, y, job.first.zero_point, body, out.pitch);
      continue;
    }
    if (window.upscale == 2 && y % 2 == 1) {
      std::fill(body, body + window.needed_x * out.pitch, To{0});
      continue;
    }
    read_row(map, memory, y / 2, job.first.zero_point, line.data(), out.pitch);
    for (int64_t x = 0; x < window.needed_x; ++x) {
      To* place = body + x * out.pitch;
      if (window.upscale == 2 && x % 2 == 1) {
        std::fill(place, place + out.pitch, To{0});
      } else {
        std::copy_n(line.data() + x / 2 * out.pitch, out.pitch, place);
      }
    }
  }
  std::fill(out.data + (window.top + window.needed_y) * row, out.data + padded_rows(window) * row,
            fill);
  return true;
}

template bool read_padded(const Job&, const Memory&, int16_t, Padded<int16_t>&);
template bool read_padded(const Job&, const Memory&, int32_t, Padded<int32_t>&);
template bool read_padded(const Job&, const Memory&, int64_t, Padded<int64_t>&);

void write(const Output& output, const Memory& memory, const uint8_t* results) {
  const Map& map = output.map;
  const Source source = source_of(output, results);
  const bool is_one = output.height * output.width * output.depth == 1;
  memory.condition =
      is_one ? std::any_of(results, results + map.bytes, [](uint8_t byte) { return byte != 0; })
             : -1;
  for (int64_t n = 0; n < map.tiles; ++n) {
    const Tile& tile = map.tile[n];
    for (int64_t y = 0; y < tile.height; ++y) {
      const int64_t at = tile.base + y * map.stride_y;
      write_row(map, tile, source, tile.y + y, memory.base[map.region] + at);
      if (memory.marks[map.region] != nullptr) {
        mark_row(map, tile, memory.marks[map.region] + at);
      }
    }
  }
}

}  // namespace hil::npu
