#include "jobs.h"

#include <algorithm>

#include "feature_map.h"
#include "output.h"
#include "scratch.h"
#include "vectors.h"
#include "wrapping.h"

namespace hil::npu {
namespace {

// Rows of one operand, scaled and as wide as the result.
class Rows {
 public:
  Rows(const Operand& operand, const Memory& memory, int64_t width, int64_t depth)
      : operand_(operand),
        memory_(memory),
        width_(width),
        depth_(depth),
        line_(*memory.pool, width * depth),
        small_(*memory.pool, operand.map.tiles > 0 ? operand.map.width * operand.map.depth : 1) {
    if (ready() && operand.map.tiles == 0) {
      int64_t value = operand.scalar - operand.zero_point;
      scale(&value, 1);
      std::fill_n(line_.data(), width * depth, value);
    }
  }

  bool ready() const { return line_.data() != nullptr && small_.data() != nullptr; }

  const int64_t* row(int64_t y) {
    const Map& map = operand_.map;
    if (map.tiles == 0) {
      return line_.data();
    }
    if (map.height == 1 && y > 0) {
      return line_.data();  // the only one
    }
    if (map.width == width_ && map.depth == depth_) {
      read_row(map, memory_, y, operand_.zero_point, line_.data(), depth_);
      scale(line_.data(), width_ * depth_);
      return line_.data();
    }
    read_row(map, memory_, y, operand_.zero_point, small_.data(), map.depth);
    scale(small_.data(), map.width * map.depth);
    for (int64_t x = 0; x < width_; ++x) {
      const int64_t* from = small_.data() + (map.width == 1 ? 0 : x * map.depth);
      int64_t* to = line_.data() + x * depth_;
      if (map.depth == 1) {
        std::fill_n(to, depth_, *from);
      } else {
        std::copy_n(from, depth_, to);
      }
    }
    return line_.data();
  }

 private:
  void scale(int64_t* values, int64_t count) const {
    if (operand_.multiplier == 1 && operand_.shift == 0) {
      return;
    }
    if (operand_.map.tiles > 0 && operand_.map.bytes <= 2) {
      for (int64_t n = 0; n < count; ++n) {
        values[n] = (values[n] * operand_.multiplier + operand_.half) >> operand_.shift;
      }
      return;
    }
    __extension__ typedef __int128 Exact;
    for (int64_t n = 0; n < count; ++n) {
      const Exact exact = static_cast<Exact>(values[n]) * operand_.multiplier + operand_.half;
      values[n] = static_cast<int64_t>(exact >> operand_.shift);
    }
  }

  const Operand& operand_;
  const Memory& memory_;
  int64_t width_, depth_;
  Scratch<int64_t> line_, small_;
};

template <typename Step>
void each(const int64_t* a, const int64_t* b, int64_t count, int64_t* to, Step step) {
  for (int64_t n = 0; n < count; ++n) {
    to[n] = step(a[n], b[n]);
  }
}

int64_t low_bits(int64_t value, int64_t bits) {
  return bits < 64 ? value & ((INT64_C(1) << bits) - 1) : value;
}

int64_t shift_down(int64_t value, int64_t by) {
  return by >= 0 && by < 64 ? value >> by : (value < 0 ? -1 : 0);
}

int64_t shift_right_rounded(int64_t value, int64_t by, bool halves) {
  const int64_t half = halves && by > 0 && by < 64 ? INT64_C(1) << (by - 1) : 0;
  return shift_down(wrapped_sum(value, half), by);
}

int64_t shift_left(int64_t value, int64_t by, int64_t bits) {
  if (by < 0 || by > 63) {
    return 0;
  }
  const auto shifted = static_cast<uint64_t>(value) << by;
  const int64_t unused = 64 - bits;
  return static_cast<int64_t>(shifted << unused) >> unused;
}

int64_t divide(int64_t a, int64_t b) { return b == -1 ? wrapped_difference<int64_t>(0, a) : a / b; }

int64_t leading_zeros(int64_t value) {
  const auto low = static_cast<uint32_t>(value);
  return low == 0 ? 32 : __builtin_clz(low);
}

void combine(const Job& job, const int64_t* a, const int64_t* b, int64_t count, int64_t* to) {
  const int64_t bits = job.bits;
  const bool halves = job.halves != 0;
  const auto truth = [](bool holds) { return -int64_t{holds}; };
  switch (job.combine) {
    case Combine::kMul:
      return each(a, b, count, to, wrapped_product<int64_t>);
    case Combine::kAdd:
      return each(a, b, count, to, wrapped_sum<int64_t>);
    case Combine::kSub:
      return each(a, b, count, to, wrapped_difference<int64_t>);
    case Combine::kMin:
      return each(a, b, count, to, [](int64_t x, int64_t y) { return std::min(x, y); });
    case Combine::kMax:
      return each(a, b, count, to, [](int64_t x, int64_t y) { return std::max(x, y); });
    case Combine::kAbs:
      return each(a, a, count, to,
                  [](int64_t x, int64_t) { return x < 0 ? wrapped_difference<int64_t>(0, x) : x; });
    case Combine::kClz:
      return each(a, a, count, to, [](int64_t x, int64_t) { return leading_zeros(x); });
    case Combine::kShr:
      return each(a, b, count, to,
                  [=](int64_t x, int64_t y) { return shift_right_rounded(x, y, halves); });
    case Combine::kShl:
      return each(a, b, count, to, [=](int64_t x, int64_t y) { return shift_left(x, y, bits); });
    case Combine::kLsr:
      return each(a, b, count, to,
                  [=](int64_t x, int64_t y) { return shift_down(low_bits(x, bits), y); });
    case Combine::kDiv:
      return each(a, b, count, to, divide);
    case Combine::kCmpEq:
      return each(a, b, count, to, [&](int64_t x, int64_t y) { return truth(x == y); });
    case Combine::kCmpNe:
      return each(a, b, count, to, [&](int64_t x, int64_t y) { return truth(x != y); });
    case Combine::kCmpGe:
      return each(a, b, count, to, [&](int64_t x, int64_t y) { return truth(x >= y); });
    case Combine::kCmpGt:
      return each(a, b, count, to, [&](int64_t x, int64_t y) { return truth(x > y); });
    case Combine::kAnd:
      return each(a, b, count, to, [](int64_t x, int64_t y) { return x & y; });
    case Combine::kOr:
      return each(a, b, count, to, [](int64_t x, int64_t y) { return x | y; });
    case Combine::kXor:
      return each(a, b, count, to, [](int64_t x, int64_t y) { return x ^ y; });
    case Combine::kNot:
      return each(a, a, count, to, [](int64_t x, int64_t) { return ~x; });
    case Combine::kAndNot:
      return each(a, b, count, to, [](int64_t x, int64_t y) { return x & ~y; });
  }
}

bool has_one_operand(Combine mode) {
  return mode == Combine::kAbs || mode == Combine::kClz || mode == Combine::kNot;
}

}  // namespace

bool elementwise(const Job& job, const Memory& memory) {
  const Output& output = job.output;
  const auto mode = job.combine;
  const int64_t row = output.width * output.depth;
  Rows first(job.first, memory, output.width, output.depth);
  Rows second(has_one_operand(mode) ? job.first : job.second, memory, output.width, output.depth);
  const Scratch<int64_t> line(*memory.pool, row + kLanes);
  const Scratch<uint8_t> results(*memory.pool, output.height * row * output.map.bytes);
  if (!first.ready() || !second.ready() || line.data() == nullptr || results.data() == nullptr) {
    return false;
  }
  for (int64_t y = 0; y < output.height; ++y) {
    const int64_t* divisors = second.row(y);
    if (mode == Combine::kDiv && std::count(divisors, divisors + row, 0) > 0) {
      return fail(memory, Trouble::kDivisor);
    }
    combine(job, first.row(y), divisors, row, line.data());
    if (output.map.tiles > 0) {
      uint8_t* to = results.data() + y * row * output.map.bytes;
      finish_values(job, memory, Values<int64_t>{line.data(), 0, 1, to, 0}, 0, 0, row);
    }
  }
  if (output.map.tiles > 0) {
    write(output, memory, results.data());
  }
  return true;
}

}  // namespace hil::npu
