// The driver library's operating system with faults in it: any call fails, times out, or does less
// than it was asked for.
#pragma once

#include <ethosu_system.hpp>

#include <cerrno>

namespace hil::ethosu::linux_driver {

enum class Call { Open, Ioctl, Read, Write, Poll, Close };

class FaultySystem final : public EthosU::System {
 public:
  enum class Fault { None, Fails, Short, Empty, TimesOut };

  explicit FaultySystem(EthosU::System& real) : real_(real) {}

  /// From now on: the `number`th such call (from 0; of an ioctl that is a `request`, unless 0) is
  /// wrong, once.
  void plan(Call call, size_t number, Fault fault, int with = EIO, unsigned long request = 0) {
    call_ = call;
    left_ = number;
    fault_ = fault;
    errno_ = with;
    request_ = request;
    met_ = false;
  }
  /// The call that was planned was made.
  bool met() const { return met_; }
  /// Of all kinds, since the beginning.
  size_t calls(Call call) const { return calls_[static_cast<size_t>(call)]; }

  int open(const char* path) override {
    return now(Call::Open) == Fault::None ? real_.open(path) : failed();
  }
  int ioctl(int file, unsigned long request, void* argument) override {
    return now(Call::Ioctl, request) == Fault::None ? real_.ioctl(file, request, argument)
                                                    : failed();
  }
  ssize_t pread(int file, void* data, size_t size, off_t offset) override {
    const Fault fault = now(Call::Read);
    return fault == Fault::Fails ? failed() : real_.pread(file, data, less(fault, size), offset);
  }
  ssize_t pwrite(int file, const void* data, size_t size, off_t offset) override {
    const Fault fault = now(Call::Write);
    return fault == Fault::Fails ? failed() : real_.pwrite(file, data, less(fault, size), offset);
  }
  int poll(int file, int64_t timeout_ns) override {
    const Fault fault = now(Call::Poll);
    if (fault == Fault::TimesOut) return 0;
    return fault == Fault::Fails ? failed() : real_.poll(file, timeout_ns);
  }
  /// Closes it in any case, as Linux does.
  int close(int file) override {
    const int closed = real_.close(file);
    return now(Call::Close) == Fault::None ? closed : failed();
  }

 private:
  Fault now(Call call, unsigned long request = 0) {
    ++calls_[static_cast<size_t>(call)];
    if (fault_ == Fault::None || call != call_ || (request_ != 0 && request != request_)) {
      return Fault::None;
    }
    if (left_-- > 0) return Fault::None;
    met_ = true;
    const Fault fault = fault_;
    fault_ = Fault::None;
    return fault;
  }
  int failed() {
    errno = errno_;
    return -1;
  }
  static size_t less(Fault fault, size_t size) {
    if (fault == Fault::Empty) return 0;
    return fault == Fault::Short ? size / 2 : size;
  }

  EthosU::System& real_;
  Call call_ = Call::Open;
  Fault fault_ = Fault::None;
  size_t left_ = 0;
  int errno_ = 0;
  unsigned long request_ = 0;
  bool met_ = false;
  size_t calls_[6] = {};
};

}  // namespace hil::ethosu::linux_driver
