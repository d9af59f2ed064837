// Builds Vela streams for tests, valid unless a test asks otherwise.
#pragma once

#include <string>
#include <vector>

#include "bytes.h"

namespace build {

inline void put_u32(Bytes* out, uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) out->push_back(value >> shift & 0xFF);
}

inline Bytes u32(uint32_t value) {
  Bytes out;
  put_u32(&out, value);
  return out;
}

struct IoRow {
  std::vector<int32_t> shape;  // leading ones are added
  int32_t element_size = 1;
  int32_t offset = 0;
  int32_t region = 1;
};

inline Bytes io_table(const std::vector<IoRow>& rows) {
  Bytes out = u32(static_cast<uint32_t>(rows.size()));
  for (const IoRow& row : rows) {
    for (size_t i = row.shape.size(); i < 6; ++i) put_u32(&out, 1);
    for (int32_t extent : row.shape) put_u32(&out, static_cast<uint32_t>(extent));
    put_u32(&out, static_cast<uint32_t>(row.element_size));
    put_u32(&out, static_cast<uint32_t>(row.offset));
    put_u32(&out, static_cast<uint32_t>(row.region));
  }
  return out;
}

constexpr uint32_t kU55_128 = 0x00001807, kU55Id = 0x10066001;  // as Vela 5.1.0 writes them

/// COP1 with the NPU's configuration and `commands`, which start at a multiple of 16.
inline Bytes payload(const std::vector<uint32_t>& commands, uint32_t config = kU55_128,
                     uint32_t id = kU55Id) {
  Bytes out;
  for (uint32_t word : {0x31504F43u, 0x00100001u, config, id, 5u, 5u, 5u}) put_u32(&out, word);
  const uint32_t count = static_cast<uint32_t>(commands.size());
  put_u32(&out, 2u | (count >> 16) << 8 | count << 16);
  for (uint32_t word : commands) put_u32(&out, word);
  return out;
}

constexpr uint32_t kU85_256 = 0x20000118, kU85Id = 0x20007000;  // the same

struct Container {
  uint32_t config = kU85_256, id = kU85Id, features = 2, cache = 0;
  Bytes commands = u32(0xFFFF);
};

/// COP2, as Vela 5.1.0 writes it: the stream at a multiple of 16.
inline Bytes cop2(const Container& container = Container()) {
  Bytes out;
  const uint32_t size = static_cast<uint32_t>(container.commands.size());
  for (uint32_t word :
       {0x32504F43u, 1u, 48 + size, 0u, 1u, 40 + size, 36u, 0x4D554556u, 1u, 20u, container.config,
        container.id, container.features, container.cache, 0u, 0xFFFFFFFFu}) {
    put_u32(&out, word);
  }
  out.insert(out.end(), container.commands.begin(), container.commands.end());
  return out;
}

struct VelaBlock {
  std::string name;
  Bytes data;
  uint8_t external = 0;
  uint8_t reserved = 0;
};

inline Bytes vela_stream(const std::vector<VelaBlock>& blocks) {
  Bytes out;
  for (const VelaBlock& block : blocks) {
    for (size_t i = 0; i < 16; ++i) {
      out.push_back(i < block.name.size() ? static_cast<uint8_t>(block.name[i]) : 0);
    }
    put_u32(&out, static_cast<uint32_t>(block.data.size()));
    out.push_back(block.external);
    out.insert(out.end(), 11, block.reserved);
    out.insert(out.end(), block.data.begin(), block.data.end());
    out.resize((out.size() + 15) / 16 * 16);
  }
  return out;
}

/// Blocks of one delegate: order and names as ExecuTorch's arm_vela.py writes them.
struct Vela {
  Bytes commands = payload({0xFFFF});
  Bytes weights = Bytes(20, 7);
  uint32_t scratch = 64;
  std::vector<IoRow> inputs = {{{4}, 1, 0, 1}};
  std::vector<IoRow> outputs = {{{4}, 1, 16, 1}};

  std::vector<VelaBlock> blocks() const {
    return {{"vela_bin_stream", {}},      {"cmd_data", commands},
            {"weight_data", weights},     {"scratch_size", u32(scratch)},
            {"inputs", io_table(inputs)}, {"outputs", io_table(outputs)},
            {"vela_end_stream", {}}};
  }
  Bytes bytes() const { return vela_stream(blocks()); }
};

}  // namespace build
