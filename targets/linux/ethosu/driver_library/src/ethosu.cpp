#include "ethosu.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../uapi.h"
#include "../include/ethosu_system.hpp"

namespace EthosU {

namespace {

constexpr int64_t kNsPerS = 1000000000;

class LinuxSystem final : public System {
 public:
  int open(const char* path) override { return ::open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC); }
  int ioctl(int file, unsigned long request, void* argument) override {
    return ::ioctl(file, request, argument);
  }
  ssize_t pread(int file, void* data, size_t size, off_t offset) override {
    return ::pread(file, data, size, offset);
  }
  ssize_t pwrite(int file, const void* data, size_t size, off_t offset) override {
    return ::pwrite(file, data, size, offset);
  }
  int poll(int file, int64_t timeout_ns) override {
    struct pollfd asked = {file, POLLIN, 0};
    const struct timespec limit = {static_cast<time_t>(timeout_ns / kNsPerS),
                                   static_cast<long>(timeout_ns % kNsPerS)};
    return ::ppoll(&asked, 1, timeout_ns < 0 ? nullptr : &limit, nullptr);
  }
  int close(int file) override { return ::close(file); }
};

[[noreturn]] void fail(const char* what) {
  const int number = errno;
  throw Exception(std::string(what) + ": " + std::strerror(number));
}

int checked(const char* what, int result) {
  if (result < 0) fail(what);
  return result;
}

/// Calls `step` with what is left, until all is done.
template <typename Step>
void all_of(const char* what, size_t size, Step step) {
  for (size_t done = 0; done < size;) {
    const ssize_t now = step(done, size - done);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) fail(what);
    if (now == 0) {
      throw Exception(std::string(what) + ": " + std::to_string(done) + " of " +
                      std::to_string(size) + " bytes");
    }
    done += static_cast<size_t>(now);
  }
}

hil_ethosu_inference_status status_of(int file) {
  hil_ethosu_inference_status found = {};
  checked("asking for an inference's status",
          system().ioctl(file, HIL_ETHOSU_INFERENCE_STATUS, &found));
  return found;
}

std::vector<int32_t> descriptors(const std::vector<std::shared_ptr<Buffer>>& buffers) {
  std::vector<int32_t> found;
  found.reserve(buffers.size());
  for (const auto& buffer : buffers) found.push_back(buffer->getFd());
  return found;
}

int number_of(const std::shared_ptr<Buffer>& buffer) {
  return buffer == nullptr ? -1 : buffer->getFd();
}

uint64_t address(const void* data) { return reinterpret_cast<uintptr_t>(data); }

}  // namespace

__attribute__((weak)) System& system() {
  static LinuxSystem linux_itself;
  return linux_itself;
}

Descriptor::~Descriptor() {
  if (number_ > 0) system().close(number_);
}

void Buffer::write(char* source, size_t size) {
  all_of("writing a buffer", size, [&](size_t done, size_t left) {
    return system().pwrite(getFd(), source + done, left, static_cast<off_t>(done));
  });
}

void Buffer::read(char* destination, size_t size) {
  all_of("reading a buffer", size, [&](size_t done, size_t left) {
    return system().pread(getFd(), destination + done, left, static_cast<off_t>(done));
  });
}

Device::Device(const char* path)
    : file_(checked((std::string("opening ") + path).c_str(), system().open(path))) {
  hil_ethosu_capabilities found = {};
  checked("asking for the NPU's capabilities",
          system().ioctl(getFd(), HIL_ETHOSU_CAPABILITIES, &found));
  if (found.version != HIL_ETHOSU_VERSION) {
    throw Exception(std::string(path) + " has version " + std::to_string(found.version) +
                    " of its interface, expected " + std::to_string(HIL_ETHOSU_VERSION));
  }
}

std::vector<std::shared_ptr<Buffer>> Device::createBuffers(const std::vector<size_t>& sizes) {
  const std::vector<uint64_t> asked(sizes.begin(), sizes.end());
  std::vector<int32_t> made(sizes.size(), -1);
  hil_ethosu_create_buffers job = {};
  job.sizes = address(asked.data());
  job.fds = address(made.data());
  job.count = static_cast<uint32_t>(asked.size());
  std::vector<std::shared_ptr<Buffer>> buffers;
  buffers.reserve(made.size());
  checked("creating buffers", system().ioctl(getFd(), HIL_ETHOSU_CREATE_BUFFERS, &job));
  for (const int32_t one : made) buffers.push_back(std::make_shared<Buffer>(one));
  return buffers;
}

Network::Network(const Device& device, const unsigned char* data, size_t size)
    : file_([&] {
        hil_ethosu_create_network job = {address(data), size};
        return checked("creating a network",
                       system().ioctl(device.getFd(), HIL_ETHOSU_CREATE_NETWORK, &job));
      }()) {}

int Inference::create(const std::vector<uint32_t>& counters, bool cycle_counter) const {
  if (counters.size() > HIL_ETHOSU_PMU_MAX) throw Exception("more counters than the NPU has");
  const std::vector<int32_t> ifms = descriptors(inputs_), ofms = descriptors(outputs_);
  hil_ethosu_create_inference job = {};
  job.ifm_fds = address(ifms.data());
  job.ofm_fds = address(ofms.data());
  job.ifm_count = static_cast<uint32_t>(ifms.size());
  job.ofm_count = static_cast<uint32_t>(ofms.size());
  job.intermediate_fd = number_of(intermediate_);
  job.constant_fd = number_of(constant_);
  job.cycle_counter = cycle_counter ? 1 : 0;
  for (size_t i = 0; i < counters.size(); ++i) job.pmu_events[i] = counters[i];
  return checked("creating an inference",
                 system().ioctl(network_->getFd(), HIL_ETHOSU_CREATE_INFERENCE, &job));
}

bool Inference::wait(int64_t timeout_ns) const {
  int ready = system().poll(file_.number(), timeout_ns);
  while (ready < 0 && errno == EINTR) ready = system().poll(file_.number(), timeout_ns);
  return checked("waiting for an inference", ready) == 0;
}

InferenceStatus Inference::status() const {
  switch (status_of(file_.number()).state) {
    case HIL_ETHOSU_OK:
      return InferenceStatus::OK;
    case HIL_ETHOSU_RUNNING:
      return InferenceStatus::RUNNING;
    case HIL_ETHOSU_REJECTED:
      return InferenceStatus::REJECTED;
    case HIL_ETHOSU_ABORTED:
      return InferenceStatus::ABORTED;
    default:
      return InferenceStatus::ERROR;
  }
}

uint64_t Inference::getCycleCounter() const { return status_of(file_.number()).cycles; }

bool Inference::cancel() const {
  if (status() != InferenceStatus::RUNNING) return false;
  checked("cancelling an inference",
          system().ioctl(file_.number(), HIL_ETHOSU_INFERENCE_CANCEL, nullptr));
  return status() == InferenceStatus::ABORTED;
}

}  // namespace EthosU
