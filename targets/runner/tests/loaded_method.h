// A program loaded into a method, with the memory both live in.
#pragma once

#include <cstring>

#include "core/method.h"
#include "fake_platform.h"
#include "program_builder.h"

struct LoadedMethod {
  explicit LoadedMethod(const build::Bytes& file, size_t pool = 1 << 16,
                        hil::MethodOptions options = {})
      : bytes(file) {
    fake::reset();
    fake::take_log();
    std::memset(memory, 0xA5, sizeof(memory));  // nobody may count on zeros
    arena = hil::Arena({memory, pool});
    temp = hil::Arena({temp_memory, sizeof(temp_memory)});
    if (options.kernels.empty()) options.kernels = hil::kernel_table();
    options.backends = hil::backend_table();
    error = program.load({bytes.data(), bytes.size()});
    if (error == hil::Error::Ok) error = method.init(program, "forward", arena, temp, options);
  }

  hil::Error set(size_t index, const build::Bytes& data) {
    return method.set_input(index, {data.data(), data.size()});
  }
  build::Bytes output(size_t index) {
    hil::Span<const uint8_t> out;
    if (method.output_bytes(index, &out) != hil::Error::Ok) return {};
    return build::Bytes(out.begin(), out.end());
  }

  build::Aligned bytes;
  alignas(32) uint8_t memory[1 << 16];
  alignas(32) uint8_t temp_memory[256];
  hil::Arena arena, temp;
  hil::Program program;
  hil::Error error = hil::Error::Ok;
  hil::Method method;  // last: destroyed before what it points into
};
