// The order of the fields is the one in which ``ethosu.mlw_codec`` (ethos-u-vela 5.1.0) writes
// them, which is also what this is tested against: a header per slice, then chunks of at most
// twelve weights, each with the first parts of its codes ahead of the second parts of the chunk
// before it.
#include "mlw.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kEndOfStream = 7, kNoZeroRuns = 6;  // as zero divisor
constexpr int kUncompressed = 7;                  // as weight divisor
constexpr int kSymbols = 12;
// Each bound is of the format or of the hardware: mlw_decode.cpp, mlw_encode.cpp (Vela 5.1.0).
constexpr int kMostZeroDivisor = 3, kMostDivisor = 5;  // else one of those above, or undefined
constexpr int kMostIndex = 511;                        // of a weight: the hardware has 9 bits
constexpr int64_t kMostValues = (1 << 15) + 1;  // of a slice: a count of 15 bits, less one; and
                                                // one more run of zeros before the first weight
constexpr int64_t kAhead = 8;                   // weights of zeros, at most, when more are read
constexpr int64_t kAlignment = 128;             // bits, of what follows the end of a stream
// A run of zeros is as long as the operation's weights: the format sets no bound. The quotient of
// one may reach the most weights that the model reads (kernel_library.py's ENCODED), and 8 times
// that fits an int32_t.
constexpr int kMostRunQuotient = 1 << 27;

class Bits {
 public:
  Bits(const uint8_t* data, int64_t length) : data_(data), end_(8 * length) {}

  // At most kMost at a time.
  uint64_t get(int count) {
    if (count > end_ - at_) {
      failed_ = true;
      at_ = end_;
      return 0;
    }
    uint64_t word = 0;
    const int64_t first = at_ / 8, bytes = end_ / 8 - first;
    if (bytes >= 8) {
      std::memcpy(&word, data_ + first, 8);
    } else {
      std::memcpy(&word, data_ + first, static_cast<size_t>(bytes));
    }
    word >>= at_ % 8;
    at_ += count;
    return word & ((UINT64_C(1) << count) - 1);
  }

  int number(int count) { return static_cast<int>(get(count)); }

  // Adds numbers of ``bits`` each to values.
  void add(int32_t* values, int64_t count, int bits) {
    const int64_t together = bits > 0 ? kMost / bits : count;
    for (int64_t n = 0; n < count && bits > 0; n += together) {
      const int64_t some = std::min(together, count - n);
      uint64_t rest = get(static_cast<int>(some) * bits);
      for (int64_t k = 0; k < some; ++k) {
        values[n + k] += static_cast<int32_t>(rest & ((UINT64_C(1) << bits) - 1));
        rest >>= bits;
      }
    }
  }

  void align() { at_ = std::min(end_, (at_ + kAlignment - 1) / kAlignment * kAlignment); }
  bool at_end() const { return at_ == end_; }
  bool failed() const { return failed_; }

 private:
  static constexpr int kMost = 56;
  const uint8_t* data_;
  int64_t end_, at_ = 0;
  bool failed_ = false;
};

struct Palette {
  int size = 0, bits = 0, offset = 0;
  int16_t entry[32] = {};

  static int16_t signed_of(int code) {
    const int magnitude = code >> 1;
    return static_cast<int16_t>((code & 1) != 0 ? -magnitude : magnitude);
  }

  void read(Bits& in) {
    offset = in.number(5);
    size = in.number(5);
    size += size > 0 ? 1 : 0;
    bits = in.number(3) + 2;
    for (int n = 0; n < size; ++n) {
      entry[n] = signed_of(in.number(bits));
    }
  }

  int16_t at(int index) const {
    return index < size ? entry[index] : signed_of(index - size + offset);
  }

  int index_bits() const {
    if (size == 0) {
      return bits;
    }
    int needed = 0;
    while (1 << needed < size) {
      ++needed;
    }
    return needed;
  }
};

// The values of one kind of a slice. Their quotients come a chunk ahead of their remainders.
struct Values {
  int32_t value[kMostValues + kSymbols];
  int64_t count, seen, finished;  // seen: of which the quotient was read
  int divisor, carry;

  void start(int64_t how_many, int by) {
    count = how_many;
    divisor = by;
    seen = finished = carry = 0;
  }

  // What is behind the last value is no value.
  void clip() { seen = std::min(seen, count); }

  void finish(Bits& in, int64_t before) {
    in.add(value + finished, before - finished, divisor);
    finished = before;
  }

  void add_weights(uint32_t low, uint32_t high, int symbols, bool truncated) {
    const uint32_t always = truncated ? 1 : 0;
    const int by = divisor;
    int32_t* to = value + seen;
    int32_t sum = carry;
    for (int n = 0; n < symbols; ++n) {
      const uint32_t one = low >> n & 1, two = one & high, ends = (two ^ 1) | always;
      high >>= one;
      sum += static_cast<int32_t>(one + two);
      *to = sum << by;
      to += ends;
      sum &= static_cast<int32_t>(ends) - 1;
    }
    carry = sum;
    seen = to - value;
    clip();
  }

  void add_zeros(uint32_t unary, int symbols) {
    const int by = divisor;
    int32_t* to = value + seen;
    int32_t sum = carry;
    for (int n = 0; n < symbols; ++n) {
      const uint32_t one = unary >> n & 1;
      sum += static_cast<int32_t>(one);
      *to = sum << by;
      to += one ^ 1;
      sum &= -static_cast<int32_t>(one);
    }
    carry = sum;
    seen = to - value;
    clip();
  }
};

class Out {
 public:
  Out(int16_t* to, int64_t room) : to_(to), room_(room) {}

  void weight(int16_t value) {
    if (count_ < room_) {
      to_[count_] = value;
    } else {
      fits_ = fits_ && value == 0;
    }
    ++count_;
  }

  bool has_room(int64_t more) const { return more <= room_ - count_; }

  // Where the caller writes so many weights, for which there is room.
  int16_t* take(int64_t more) {
    count_ += more;
    return to_ + count_ - more;
  }

  void zeros(int64_t more) {
    for (int64_t n = count_; n < std::min(count_ + more, room_); ++n) {
      to_[n] = 0;
    }
    count_ += more;
  }

  int64_t count() const { return count_; }
  bool fits() const { return fits_; }

 private:
  int16_t* to_;
  int64_t room_, count_ = 0;
  bool fits_ = true;
};

struct Decoder {
  Bits in;
  Out out;
  Palette palette;
  Values weights, zeros;
  bool runs, truncated, plain;

  bool all() {
    for (bool first = true; !in.at_end();) {
      const int divisor = in.number(3);
      if (divisor == kEndOfStream) {
        in.align();
        first = true;
      } else if (slice(divisor, first)) {
        first = false;
      } else {
        return false;
      }
    }
    return !in.failed();
  }

  bool slice(int zero_divisor, bool first) {
    runs = zero_divisor != kNoZeroRuns;
    const int64_t count = in.number(15) + 1;
    int divisor = in.number(3);
    truncated = in.get(1) != 0;
    const bool fresh = in.get(1) != 0;
    if ((runs && zero_divisor > kMostZeroDivisor) || (first && !fresh)) {
      return false;
    }
    if (fresh) {
      palette.read(in);
    }
    plain = divisor == kUncompressed;
    if (plain) {
      divisor = palette.index_bits();
    } else if (divisor > kMostDivisor) {
      return false;
    }
    weights.start(count, divisor);
    zeros.start(runs ? count + (fresh ? 1 : 0) : 0, zero_divisor);
    if (!chunks() || *std::max_element(weights.value, weights.value + count) > kMostIndex) {
      return false;
    }
    interleave(fresh);
    return true;
  }

  // Reads the values: those of the one kind are never much ahead of the other's.
  bool chunks() {
    const int zero_length = zeros.divisor < 3 ? 12 : 8;
    const int symbols = plain && weights.divisor > kMostDivisor ? 8 : kSymbols;
    for (bool going = true; going;) {
      const int64_t ahead = runs ? weights.seen - zeros.seen : 0;
      const bool more_weights = weights.seen < weights.count && ahead < kAhead;
      const bool more_zeros = ahead >= 0 && zeros.seen < zeros.count;
      const int64_t old_weights = weights.seen, old_zeros = zeros.seen;
      const auto low = static_cast<uint32_t>(more_weights && !plain ? in.get(kSymbols) : 0);
      if (more_zeros) {
        zeros.add_zeros(static_cast<uint32_t>(in.get(zero_length)), zero_length);
      }
      if (more_weights) {
        const auto high = static_cast<uint32_t>(in.get(__builtin_popcount(low)));
        weights.add_weights(low, high, symbols, truncated);
      }
      weights.finish(in, old_weights);
      zeros.finish(in, old_zeros);
      if (in.failed() || weights.carry > kMostIndex || zeros.carry > kMostRunQuotient) {
        return false;
      }
      going = more_weights || more_zeros;
    }
    return weights.finished == weights.count && zeros.finished == zeros.count;
  }

  // A run of zeros before each weight, or from the second slice on after each.
  void interleave(bool leading) {
    const int32_t* run = zeros.value;
    if (!runs && out.has_room(weights.count)) {
      int16_t* to = out.take(weights.count);
      for (int64_t n = 0; n < weights.count; ++n) {
        to[n] = palette.at(weights.value[n]);
      }
      return;
    }
    if (runs && leading) {
      out.zeros(*run++);
    }
    for (int64_t n = 0; n < weights.count; ++n) {
      out.weight(palette.at(weights.value[n]));
      if (runs) {
        out.zeros(run[n]);
      }
    }
  }
};

}  // namespace

int64_t hil_npu_decode(const uint8_t* data, int64_t length, int16_t* to, int64_t room) {
  auto* decoder = static_cast<Decoder*>(std::malloc(sizeof(Decoder)));
  if (decoder == nullptr) {
    return -1;
  }
  decoder->in = Bits(data, length);
  decoder->out = Out(to, room);
  decoder->palette = Palette();
  const bool held = decoder->all(), fits = decoder->out.fits();
  const int64_t count = decoder->out.count();
  std::free(decoder);
  return !held ? -1 : fits ? count : -2;
}
