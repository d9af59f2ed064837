#include <algorithm>
#include <cstring>

#include "reorder.h"

namespace hil::npu {
namespace {

bool all_zero(const int16_t* values, int64_t count) {
  return std::all_of(values, values + count, [](int16_t value) { return value == 0; });
}

class Reorder {
 public:
  Reorder(const OrderU55& order, const int16_t* weights, int64_t count, int16_t* whole)
      : order_(order), weights_(weights), left_(count), whole_(whole) {}

  bool run() {
    const int64_t ifm_depth = order_.form == 2 ? 1 : order_.ifm_depth;
    for (int64_t ofm = 0; ofm < order_.depth; ofm += order_.ofm_block) {
      for (int64_t ifm = 0; ifm < ifm_depth; ifm += order_.ifm_block) {
        for (int64_t y = 0; y < order_.height; y += order_.step_y) {
          for (int64_t x = 0; x < order_.width; x += order_.step_x) {
            if (!sub_kernel(ofm, ifm, y, x)) {
              return false;
            }
          }
        }
      }
    }
    return true;
  }

  Disorder disorder() const { return disorder_; }

 private:
  bool fail(Disorder disorder) {
    disorder_ = disorder;
    return false;
  }

  // ``count`` weights of neighbouring input channels.
  bool put(int64_t ofm, int64_t ifm, int64_t y, int64_t x, bool inside, int64_t count) {
    if (left_ < count) {
      return fail(Disorder::kTooFew);
    }
    const int64_t depth = order_.form == 2 ? 1 : order_.ifm_depth;
    const int64_t real = inside && ofm < order_.depth ? std::clamp<int64_t>(depth - ifm, 0, count)
                                                      : 0;
    if (real > 0) {
      int16_t* to = whole_ + ofm * order_.channel_stride + (y * order_.width + x) * depth + ifm;
      if (real == 8) {
        std::memcpy(to, weights_, 8 * sizeof *to);
      } else {
        std::memcpy(to, weights_, static_cast<size_t>(real) * sizeof *to);
      }
    }
    const bool held = all_zero(weights_ + real, count - real);
    weights_ += count;
    left_ -= count;
    return held || fail(Disorder::kPadding);
  }

  bool sub_kernel(int64_t ofm, int64_t ifm, int64_t y, int64_t x) {
    const int64_t height = std::min(order_.height - y, order_.step_y);
    const int64_t width = std::min(order_.width - x, order_.step_x), elements = height * width;
    const int64_t rounded = (elements + order_.rounding - 1) / order_.rounding * order_.rounding;
    const int64_t channels = std::min(order_.ofm_block, order_.depth - ofm);
    const int64_t units = (channels + order_.ofm_unit - 1) / order_.ofm_unit;
    const bool depthwise = order_.form == 2, part = order_.form == 1;
    const int64_t left = std::min<int64_t>(order_.ifm_depth - ifm, order_.ifm_block);
    const int64_t outer = part ? (left + 7) / 8 : 1;
    const int64_t inner = part || depthwise ? 1 : order_.ifm_units;
    for (int64_t a = 0; a < outer; ++a) {
      for (int64_t unit = 0; unit < units; ++unit) {
        for (int64_t e = 0; e < rounded; ++e) {
          for (int64_t b = 0; b < inner; ++b) {
            for (int64_t o = 0; o < order_.ofm_unit; ++o) {
              if (!put(ofm + unit * order_.ofm_unit + o, ifm + (a + b) * 8, y + e / width,
                       x + e % width, e < elements, depthwise ? 1 : 8)) {
                return false;
              }
            }
          }
        }
      }
    }
    return true;
  }

  const OrderU55& order_;
  const int16_t* weights_;
  int64_t left_;
  int16_t* whole_;
  Disorder disorder_ = Disorder::kNone;
};

}  // namespace
}  // namespace hil::npu

int64_t hil_npu_reorder_u55(const hil::npu::OrderU55* order, const int16_t* weights, int64_t count,
                            int16_t* whole) {
  hil::npu::Reorder reorder(*order, weights, count, whole);
  reorder.run();
  return static_cast<int64_t>(reorder.disorder());
}
