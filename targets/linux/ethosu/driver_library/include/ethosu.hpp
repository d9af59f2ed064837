// The C++ interface of an Ethos-U driver under Linux, on the stand-in's /dev/ethosu0.
//
// Classes and calls have the names of Arm's Linux driver library, so that a program written for it
// builds with either: what is here is what ExecuTorch's backends/arm/runtime calls (August 2026),
// and cancel(). The code is ours, and below it is our interface (../../uapi.h), not Arm's.
//
// Everything fails by an Exception. Objects are cheap to destroy and cannot be copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace EthosU {

class Exception : public std::exception {
 public:
  explicit Exception(std::string what) : what_(static_cast<std::string&&>(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

/// A file descriptor, closed at the end. 0 and less: none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  int number() const { return number_; }

 private:
  int number_ = -1;
};

/// Memory that the NPU reaches. One that was default-constructed is none: inferences take it as an
/// absent buffer, and nothing can be read from it or written to it.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int descriptor) : file_(descriptor) {}
  /// The whole of `size` bytes, from the buffer's begin.
  void write(char* source, size_t size);
  void read(char* destination, size_t size);
  int getFd() const { return file_.number(); }

 private:
  Descriptor file_;
};

class Device {
 public:
  explicit Device(const char* path = "/dev/ethosu0");
  /// One batch: contiguous, each rounded up to 16 bytes, in this order. No size may be 0.
  std::vector<std::shared_ptr<Buffer>> createBuffers(const std::vector<size_t>& sizes);
  int getFd() const { return file_.number(); }

 private:
  Descriptor file_;
};

/// A command stream in its container, COP2. What the driver does not run is refused here.
class Network {
 public:
  Network(const Device& device, const unsigned char* data, size_t size);
  int getFd() const { return file_.number(); }

 private:
  Descriptor file_;
};

enum class InferenceStatus { OK, ERROR, RUNNING, REJECTED, ABORTED, ABORTING, PENDING };

/// Is in the device's queue once it is made.
class Inference {
 public:
  /// Inputs, and outputs, are all buffers of one batch each, in ascending order. `counters` holds
  /// events for the first performance counters, 0 for none.
  template <typename Iterator, typename Counters>
  Inference(const std::shared_ptr<Network>& network, Iterator ifm_begin, Iterator ifm_end,
            Iterator ofm_begin, Iterator ofm_end, const std::shared_ptr<Buffer>& intermediate,
            const std::shared_ptr<Buffer>& constant, const Counters& counters, bool cycle_counter)
      : network_(network),
        inputs_(ifm_begin, ifm_end),
        outputs_(ofm_begin, ofm_end),
        intermediate_(intermediate),
        constant_(constant),
        file_(create({counters.begin(), counters.end()}, cycle_counter)) {}

  /// True when it has not ended within so many nanoseconds; negative is for ever.
  bool wait(int64_t timeout_ns = -1) const;
  InferenceStatus status() const;
  uint64_t getCycleCounter() const;
  /// False when it had ended already.
  bool cancel() const;

 private:
  int create(const std::vector<uint32_t>& counters, bool cycle_counter) const;

  std::shared_ptr<Network> network_;  // it and the buffers live as long
  std::vector<std::shared_ptr<Buffer>> inputs_, outputs_;
  std::shared_ptr<Buffer> intermediate_, constant_;
  Descriptor file_;
};

}  // namespace EthosU
