// The order of the fields is the one in which ``ethosu.mlw_codec`` (ethos-u-vela 5.1.0) writes
// them, which is also what this is tested against: a header per slice, then chunks of at most
// twelve weights, each with the first parts of its codes ahead of the second parts of the chunk
// before it.
#include "mlw.h"

#include <algorithm>

namespace {

constexpr int kEndOfStream = 7, kNoZeroRuns = 6;  // as zero divisor
constexpr int kUncompressed = 7;                  // as weight divisor
constexpr int kSymbols = 12;
constexpr int kMostQuotient = 1 << 16;  // nothing that an encoder writes gets there
constexpr int64_t kAlignment = 128;     // bits, of what follows the end of a stream

class Bits {
 public:
  Bits(const uint8_t* data, int64_t length) : data_(data), end_(8 * length) {}

  uint32_t get(int count) {
    if (count > end_ - at_) {
      failed_ = true;
      at_ = end_;
      return 0;
    }
    uint64_t word = 0;
    const int64_t first = at_ / 8, bytes = end_ / 8 - first;
    if (bytes >= 8) {
      __builtin_memcpy(&word, data_ + first, 8);
    } else {
      __builtin_memcpy(&word, data_ + first, static_cast<size_t>(bytes));
    }
    word >>= at_ % 8;
    at_ += count;
    return static_cast<uint32_t>(word & ((UINT64_C(1) << count) - 1));
  }

  void align() { at_ = std::min(end_, (at_ + kAlignment - 1) / kAlignment * kAlignment); }
  bool at_end() const { return at_ == end_; }
  bool failed() const { return failed_; }

 private:
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
    offset = static_cast<int>(in.get(5));
    size = static_cast<int>(in.get(5));
    size += size > 0 ? 1 : 0;
    bits = static_cast<int>(in.get(3)) + 2;
    for (int n = 0; n < size; ++n) {
      entry[n] = signed_of(static_cast<int>(in.get(bits)));
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

// The symbols of one kind of a slice: their quotients come one chunk ahead of their remainders.
struct Symbols {
  int64_t count, seen = 0;  // of which the quotient was read
  int divisor;
  int carry = 0, ready = 0;
  int quotient[kSymbols] = {};

  void add(int more, bool ends) {
    carry = std::min(carry + more, kMostQuotient);
    if (ends && seen < count) {
      quotient[ready++] = carry;
      carry = 0;
      ++seen;
    }
  }
};

class Out {
 public:
  Out(int16_t* to, int64_t room, int64_t most) : to_(to), room_(room), most_(most) {}

  void weight(int16_t value) {
    if (count_ < room_) {
      to_[count_] = value;
    }
    ++count_;
  }

  void zeros(int64_t more) {
    if (count_ < room_) {
      std::fill_n(to_ + count_, std::min(more, room_ - count_), int16_t{0});
    }
    count_ += more;
  }

  int64_t count() const { return count_; }
  bool is_full() const { return count_ > most_; }

 private:
  int16_t* to_;
  int64_t room_, most_, count_ = 0;
};

// A slice's weights and runs come interleaved, the one or the other some symbols ahead.
class Slice {
 public:
  Slice(Bits& in, Palette& palette, Out& out) : in_(in), palette_(palette), out_(out) {}

  bool read(int zero_divisor, bool first) {
    runs_ = zero_divisor != kNoZeroRuns;
    if (runs_ && zero_divisor > 3) {
      return false;
    }
    const int64_t values = static_cast<int64_t>(in_.get(15)) + 1;
    int divisor = static_cast<int>(in_.get(3));
    truncated_ = in_.get(1) != 0;
    const bool fresh = in_.get(1) != 0;
    if (first && !fresh) {
      return false;
    }
    if (fresh) {
      palette_.read(in_);
    }
    plain_ = divisor == kUncompressed;
    if (plain_) {
      divisor = palette_.index_bits();
    } else if (divisor > 5) {
      return false;
    }
    weights_.count = values;
    weights_.divisor = divisor;
    zeros_.count = runs_ ? values + (fresh ? 1 : 0) : 0;
    zeros_.divisor = zero_divisor;
    leading_ = fresh;
    return chunks();
  }

 private:
  bool chunks() {
    const int zero_length = zeros_.divisor < 3 ? 12 : 8;
    const int symbols = plain_ && weights_.divisor > 5 ? 8 : kSymbols;
    for (bool going = true; going;) {
      const int64_t balance = runs_ ? weights_.seen - zeros_.seen : 0;
      const bool more_weights = weights_.seen < weights_.count && (!runs_ || balance < 8);
      const bool more_zeros = runs_ && balance >= 0 && zeros_.seen < zeros_.count;
      const Symbols old_weights = weights_, old_zeros = zeros_;
      weights_.ready = zeros_.ready = 0;
      const uint32_t low = more_weights && !plain_ ? in_.get(kSymbols) : 0;
      if (more_zeros) {
        const uint32_t unary = in_.get(zero_length);
        for (int n = 0; n < zero_length; ++n) {
          const bool one = (unary >> n & 1) != 0;
          zeros_.add(one ? 1 : 0, !one);
        }
      }
      if (more_weights) {
        uint32_t high = plain_ ? 0 : in_.get(__builtin_popcount(low));
        for (int n = 0; n < symbols; ++n) {
          int code = 0;
          if ((low >> n & 1) != 0) {
            code = 1 + static_cast<int>(high & 1);
            high >>= 1;
          }
          weights_.add(code, code < 2 || truncated_);
        }
      }
      for (int n = 0; n < old_weights.ready; ++n) {
        const int rest = static_cast<int>(in_.get(weights_.divisor));
        waiting_weights_.put((old_weights.quotient[n] << weights_.divisor) + rest);
      }
      for (int n = 0; n < old_zeros.ready; ++n) {
        const int rest = static_cast<int>(in_.get(zeros_.divisor));
        waiting_zeros_.put((old_zeros.quotient[n] << zeros_.divisor) + rest);
      }
      emit();
      const int waiting = std::max(waiting_weights_.size(), waiting_zeros_.size());
      if (waiting + kSymbols > Queue::kMost || in_.failed() || out_.is_full()) {
        return false;
      }
      going = more_weights || more_zeros;
    }
    return waiting_weights_.size() == 0 && waiting_zeros_.size() == 0;
  }

  void emit() {
    if (!runs_) {
      while (waiting_weights_.size() > 0) {
        out_.weight(palette_.at(waiting_weights_.take()));
      }
      return;
    }
    while (true) {
      if (leading_ && waiting_zeros_.size() > 0) {  // a run comes before each weight
        out_.zeros(waiting_zeros_.take());
        leading_ = false;
      } else if (!leading_ && waiting_weights_.size() > 0) {
        out_.weight(palette_.at(waiting_weights_.take()));
        leading_ = true;
      } else {
        return;
      }
    }
  }

  // What waits for its partner: never more than two chunks of the one kind are ahead.
  class Queue {
   public:
    void put(int value) { items_[(first_ + size_++) % kMost] = value; }
    int take() {
      const int value = items_[first_];
      first_ = (first_ + 1) % kMost;
      --size_;
      return value;
    }
    int size() const { return size_; }

    static constexpr int kMost = 64;

   private:
    int items_[kMost] = {};
    int first_ = 0, size_ = 0;
  };

  Bits& in_;
  Palette& palette_;
  Out& out_;
  bool runs_ = false, truncated_ = false, plain_ = false, leading_ = false;
  Symbols weights_{}, zeros_{};
  Queue waiting_weights_, waiting_zeros_;
};

}  // namespace

int64_t hil_npu_decode(const uint8_t* data, int64_t length, int16_t* to, int64_t room,
                       int64_t most) {
  Bits in(data, length);
  Out out(to, room, most);
  Palette palette;
  for (bool first = true; !in.at_end();) {
    const int divisor = static_cast<int>(in.get(3));
    if (divisor == kEndOfStream) {
      in.align();
      first = true;
      continue;
    }
    if (!Slice(in, palette, out).read(divisor, first) || in.failed()) {
      return -1;
    }
    first = false;
  }
  return out.count();
}
