#include "elementwise.h"

#include <algorithm>

#include "feature_map.h"
#include "output.h"
#include "scratch.h"
#include "vectors.h"

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
    for (int64_t n = 0; n < count; ++n) {
      values[n] = (values[n] * operand_.multiplier + operand_.half) >> operand_.shift;
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

void compare(Combine how, const int64_t* a, const int64_t* b, int64_t count, int64_t* to) {
  const auto truth = [](bool held) { return -int64_t{held}; };
  switch (how) {
    case Combine::kEqual:
      return each(a, b, count, to, [&](int64_t x, int64_t y) { return truth(x == y); });
    case Combine::kDifferent:
      return each(a, b, count, to, [&](int64_t x, int64_t y) { return truth(x != y); });
    case Combine::kNotLess:
      return each(a, b, count, to, [&](int64_t x, int64_t y) { return truth(x >= y); });
    case Combine::kMore:
      return each(a, b, count, to, [&](int64_t x, int64_t y) { return truth(x > y); });
    case Combine::kAnd:
      return each(a, b, count, to, [](int64_t x, int64_t y) { return x & y; });
    case Combine::kOr:
      return each(a, b, count, to, [](int64_t x, int64_t y) { return x | y; });
    case Combine::kExclusiveOr:
      return each(a, b, count, to, [](int64_t x, int64_t y) { return x ^ y; });
    default:
      return each(a, b, count, to, [](int64_t x, int64_t y) { return x & ~y; });
  }
}

bool is_of_one(Combine how) {
  return how == Combine::kAbsolute || how == Combine::kLeadingZeros || how == Combine::kNot;
}

void combine(Combine how, const int64_t* a, const int64_t* b, int64_t count, int64_t* to) {
  switch (how) {
    case Combine::kAdd:
      return each(a, b, count, to, [](int64_t x, int64_t y) { return x + y; });
    case Combine::kSubtract:
      return each(a, b, count, to, [](int64_t x, int64_t y) { return x - y; });
    case Combine::kMultiply:
      return each(a, b, count, to, [](int64_t x, int64_t y) { return x * y; });
    case Combine::kSmaller:
      return each(a, b, count, to, [](int64_t x, int64_t y) { return std::min(x, y); });
    case Combine::kLarger:
      return each(a, b, count, to, [](int64_t x, int64_t y) { return std::max(x, y); });
    case Combine::kAbsolute:
      return each(a, a, count, to, [](int64_t x, int64_t) { return x < 0 ? -x : x; });
    case Combine::kLeadingZeros:
      return each(a, a, count, to, [](int64_t x, int64_t) {
        const auto low = static_cast<uint32_t>(x);
        return int64_t{low == 0 ? 32 : __builtin_clz(low)};
      });
    case Combine::kNot:
      return each(a, a, count, to, [](int64_t x, int64_t) { return ~x; });
    default:
      return compare(how, a, b, count, to);
  }
}

}  // namespace

bool elementwise(const Job& job, const Memory& memory) {
  const Output& output = job.output;
  const auto how = static_cast<Combine>(job.operation);
  const int64_t row = output.width * output.depth;
  Rows first(job.first, memory, output.width, output.depth);
  Rows second(is_of_one(how) ? job.first : job.second, memory, output.width, output.depth);
  const Scratch<int64_t> line(*memory.pool, row + kLanes);
  const Scratch<uint8_t> results(*memory.pool, output.height * row * output.map.bytes);
  if (!first.ready() || !second.ready() || line.data() == nullptr || results.data() == nullptr) {
    return false;
  }
  for (int64_t y = 0; y < output.height; ++y) {
    combine(how, first.row(y), second.row(y), row, line.data());
    uint8_t* to = results.data() + y * row * output.map.bytes;
    finish(job, memory, Values<int64_t>{line.data(), 0, 1, to, 0}, 0, 0, row);
  }
  write(output, memory, results.data());
  return true;
}

}  // namespace hil::npu
