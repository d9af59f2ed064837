#include <algorithm>
#include <cstring>

#include "reorder.h"

namespace hil::npu {
namespace {

constexpr int64_t kGroup = 4;          // output channels that stand together
constexpr int64_t kMostElements = 64;  // of a sub-kernel: 8 rows of 8 columns
constexpr int64_t kMostStreams = 4;    // of 1024 MACs and more: STREAMS of u85_weights.py

bool all_zero(const int16_t* values, int64_t count) {
  return std::all_of(values, values + count, [](int16_t value) { return value == 0; });
}

struct Stream {
  const int16_t* weights;
  int64_t left;

  const int16_t* take(int64_t count) {
    if (left < count) {
      return nullptr;
    }
    const int16_t* taken = weights;
    weights += count;
    left -= count;
    return taken;
  }
};

struct Place {
  int64_t y, x;
};

// One stride phase after the other, x in serpentine. How many there are.
int64_t element_order(const OrderU85& order, int64_t height, int64_t width, Place* places) {
  int64_t count = 0;
  for (int64_t phase_y = 0; phase_y < order.phase_y; ++phase_y) {
    for (int64_t phase_x = 0; phase_x < order.phase_x; ++phase_x) {
      const int64_t columns = (width - phase_x + order.phase_x - 1) / order.phase_x;
      for (int64_t y = phase_y, row = 0; y < height; y += order.phase_y, ++row) {
        for (int64_t n = 0; n < columns; ++n) {
          const int64_t column = row % 2 == 0 ? n : columns - 1 - n;
          places[count++] = {y, phase_x + column * order.phase_x};
        }
      }
    }
  }
  return count;
}

class Reorder {
 public:
  Reorder(const OrderU85& order, Stream* streams, int16_t* whole)
      : order_(order), streams_(streams), whole_(whole) {}

  bool run() {
    const int64_t blocks = (order_.ifm_depth + order_.ifm_block - 1) / order_.ifm_block;
    bool forward = true;
    for (int64_t ofm = 0; ofm < order_.depth; ofm += order_.ofm_block) {
      for (int64_t n = 0; n < blocks; ++n) {
        const int64_t ifm = (forward ? n : blocks - 1 - n) * order_.ifm_block;
        for (int64_t x = 0; x < order_.width; x += order_.step_x) {
          for (int64_t y = 0; y < order_.height; y += order_.step_y) {
            if (!sub_kernel(ofm, ifm, y, x)) {
              return false;
            }
          }
        }
      }
      forward = !forward;
    }
    return placed_ == order_.depth * order_.height * order_.width * order_.ifm_depth ||
           fail(Disorder::kPlaces);
  }

  Disorder disorder() const { return disorder_; }

 private:
  bool fail(Disorder disorder) {
    disorder_ = disorder;
    return false;
  }

  bool sub_kernel(int64_t ofm, int64_t ifm, int64_t y, int64_t x) {
    Place places[kMostElements];
    const int64_t elements = element_order(order_, std::min(order_.height - y, order_.step_y),
                                           std::min(order_.width - x, order_.step_x), places);
    for (int64_t n = 0; n < elements; ++n) {
      places[n] = {y + places[n].y, x + places[n].x};
    }
    const int64_t ofm_units = units(order_.depth - ofm, order_.ofm_block, order_.ofm_unit);
    const int64_t ifm_units = units(order_.ifm_depth - ifm, order_.ifm_block, order_.ifm_unit);
    for (int64_t number = 0; number < order_.streams; ++number) {
      for (int64_t a = 0; a < ifm_units; ++a) {
        for (int64_t b = 0; b < ofm_units; ++b) {
          if (!unit(number, ofm + b * order_.ofm_unit, ifm + a * order_.ifm_unit, places,
                    elements)) {
            return false;
          }
        }
      }
    }
    return true;
  }

  static int64_t units(int64_t left, int64_t block, int64_t unit) {
    return (std::min(left, block) + unit - 1) / unit;
  }

  bool unit(int64_t number, int64_t ofm, int64_t ifm, const Place* places, int64_t elements) {
    const int64_t row = order_.ifm_unit * order_.ofm_unit / order_.streams;
    const int64_t groups = (elements + order_.rounding - 1) / order_.rounding;
    for (int64_t e = 0; e < groups * order_.rounding; ++e) {
      const int16_t* weights = streams_[number].take(row);
      if (weights == nullptr) {
        return fail(Disorder::kTooFew);
      }
      if (e < elements) {
        if (!put(number, ofm, ifm, places[e], weights)) {
          return false;
        }
      } else if (!all_zero(weights, row)) {
        return fail(Disorder::kPadding);
      }
      if ((e + 1) % order_.rounding == 0 && order_.padding > 0) {
        const int64_t count = order_.padding * row;
        const int16_t* between = streams_[number].take(count);
        if (between == nullptr) {
          return fail(Disorder::kTooFew);
        }
        if (!all_zero(between, count)) {
          return fail(Disorder::kPadding);
        }
      }
    }
    return true;
  }

  // Whether what lies beyond the depths is 0.
  bool put(int64_t number, int64_t ofm, int64_t ifm, Place place, const int16_t* weights) {
    const int64_t groups = order_.ofm_unit / (kGroup * order_.streams);
    const bool whole = ofm + order_.ofm_unit <= order_.depth &&
                       ifm + order_.ifm_unit <= order_.ifm_depth;
    if (whole && order_.ifm_step == 8) {
      put_whole(number, ofm, ifm, place, weights);
      return true;
    }
    for (int64_t step = 0; step < order_.ifm_unit / order_.ifm_step; ++step) {
      const int64_t first = ifm + step * order_.ifm_step;
      const int64_t inside = std::clamp<int64_t>(order_.ifm_depth - first, 0, order_.ifm_step);
      for (int64_t group = 0; group < groups; ++group) {
        for (int64_t n = 0; n < kGroup; ++n) {
          const int64_t channel = ofm + (group * order_.streams + number) * kGroup + n;
          const int64_t at = (channel * order_.height + place.y) * order_.width + place.x;
          const int64_t count = channel < order_.depth ? inside : 0;
          int16_t* to = whole_ + at * order_.ifm_depth + first;
          if (count > 0) {
            std::memcpy(to, weights, static_cast<size_t>(count) * sizeof *to);
          }
          if (!all_zero(weights + count, order_.ifm_step - count)) {
            return fail(Disorder::kPadding);
          }
          placed_ += count;
          weights += order_.ifm_step;
        }
      }
    }
    return true;
  }

  // Of a unit without padding: most of them.
  void put_whole(int64_t number, int64_t ofm, int64_t ifm, Place place, const int16_t* weights) {
    const int64_t groups = order_.ofm_unit / (kGroup * order_.streams);
    const int64_t channel = order_.height * order_.width * order_.ifm_depth;
    const int64_t between = order_.streams * kGroup * channel;
    int16_t* first = whole_ + (ofm + number * kGroup) * channel +
                     (place.y * order_.width + place.x) * order_.ifm_depth + ifm;
    for (int64_t step = 0; step < order_.ifm_unit; step += 8) {
      for (int64_t group = 0; group < groups; ++group) {
        int16_t* to = first + group * between + step;
        for (int64_t n = 0; n < kGroup; ++n, to += channel, weights += 8) {
          std::memcpy(to, weights, 8 * sizeof *to);
        }
      }
    }
    placed_ += groups * kGroup * order_.ifm_unit;
  }

  const OrderU85& order_;
  Stream* streams_;
  int16_t* whole_;
  int64_t placed_ = 0;
  Disorder disorder_ = Disorder::kNone;
};

// Whether it is one that such an NPU can have.
bool fits(const OrderU85& order) {
  const int64_t sides[] = {order.ofm_block, order.ofm_unit, order.ifm_block, order.ifm_unit,
                           order.step_y,    order.step_x,   order.phase_y,   order.phase_x,
                           order.rounding,  order.ifm_step, order.streams};
  for (const int64_t side : sides) {
    if (side < 1) {
      return false;
    }
  }
  return order.streams <= kMostStreams && order.step_y * order.step_x <= kMostElements &&
         order.ifm_unit % order.ifm_step == 0 && order.ifm_block % order.ifm_unit == 0 &&
         order.ofm_unit % (kGroup * order.streams) == 0;
}

}  // namespace
}  // namespace hil::npu

int64_t hil_npu_reorder_u85(const hil::npu::OrderU85* order, const int16_t* const* streams,
                            const int64_t* counts, int16_t* whole) {
  using namespace hil::npu;
  if (!fits(*order)) {
    return static_cast<int64_t>(Disorder::kPlaces);
  }
  Stream taken[kMostStreams];
  for (int64_t n = 0; n < order->streams; ++n) {
    taken[n] = {streams[n], counts[n]};
  }
  Reorder reorder(*order, taken, whole);
  reorder.run();
  return static_cast<int64_t>(reorder.disorder());
}
