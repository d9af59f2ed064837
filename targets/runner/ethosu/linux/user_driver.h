// A driver of an Ethos-U in the program itself, by the rules of the kernel's (targets/linux/ethosu:
// uapi.h): what the driver library asks of Linux is answered here, so that all above the kernel
// runs as a native program, under sanitizers.
#pragma once

#include <uapi/ethosu.h>
#include <ethosu_system.hpp>

#include <map>
#include <memory>

#include "core/span.h"

namespace hil::ethosu::linux_driver {

/// How an inference ended. `state` is an enum hil_ethosu_state.
struct Ending {
  uint32_t state = 0;
  uint32_t npu_status = 0;
  uint32_t qread = 0;
  const char* message = "";
};

/// The NPU, and the memory that it reaches.
class Npu {
 public:
  static constexpr size_t kRegions = 5;  // constants, intermediate, SRAM, inputs, outputs

  virtual bool identify(uint32_t* config, uint32_t* id) = 0;
  virtual size_t sram_bytes() = 0;
  /// Zero, at a multiple of 16; null when there is none left.
  virtual uint8_t* take(size_t bytes) = 0;
  virtual void give_back(uint8_t* memory) = 0;
  /// Starts to work on a stream; all spans were taken.
  virtual void start(Span<const uint8_t> commands, Span<const Span<uint8_t>> regions) = 0;
  /// False: it still works, after so many nanoseconds (negative: for ever).
  virtual bool ended(int64_t timeout_ns, Ending* out) = 0;

 protected:
  ~Npu() = default;
};

class UserDriver final : public EthosU::System {
 public:
  struct Object;

  explicit UserDriver(Npu& npu);
  ~UserDriver();
  UserDriver(const UserDriver&) = delete;
  UserDriver& operator=(const UserDriver&) = delete;

  int open(const char* path) override;
  int ioctl(int file, unsigned long request, void* argument) override;
  ssize_t pread(int file, void* data, size_t size, off_t offset) override;
  ssize_t pwrite(int file, const void* data, size_t size, off_t offset) override;
  int poll(int file, int64_t timeout_ns) override;
  int close(int file) override;

  /// Descriptors that nobody has closed.
  size_t open_files() const { return files_.size(); }

 private:
  struct Device;
  struct Batch;
  struct Buffer;
  struct Network;
  struct Inference;

  template <typename T>
  std::shared_ptr<T> find(int file) const;
  template <typename T, typename Job>
  int with(int file, void* argument, int (UserDriver::*step)(T&, Job&));
  int add(std::shared_ptr<Object> object);

  int capabilities(Device& device, hil_ethosu_capabilities& job);
  int create_buffers(Device& device, hil_ethosu_create_buffers& job);
  int create_network(Device& device, hil_ethosu_create_network& job);
  int create_inference(Network& network, hil_ethosu_create_inference& job);
  int buffer_info(Buffer& buffer, hil_ethosu_buffer_info& job);
  int network_info(Network& network, hil_ethosu_network_info& job);
  int status(Inference& inference, hil_ethosu_inference_status& job);
  int cancel(int file);
  int region_of(uint64_t fds, uint32_t count, Inference& user, Span<uint8_t>* out);
  int whole(int32_t file, Inference& user, Span<uint8_t>* out);
  void start_next();
  bool await_working(int64_t timeout_ns);

  Npu& npu_;
  uint8_t* sram_ = nullptr;
  int next_ = 3;
  std::map<int, std::shared_ptr<Object>> files_;
  std::shared_ptr<Inference> working_;  // on the NPU, whoever has closed it
};

}  // namespace hil::ethosu::linux_driver
