#include "ethosu/linux/user_driver.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"
#include "ethosu/cop2.h"
#include "ethosu/driver.h"

namespace hil::ethosu::linux_driver {

/// What a descriptor stands for.
struct UserDriver::Object {
  enum Kind { kDevice, kBuffer, kNetwork, kInference };
  explicit Object(Kind is) : kind(is) {}
  virtual ~Object() = default;
  const Kind kind;
};

struct UserDriver::Device final : Object {
  static constexpr Kind kKind = kDevice;
  Device() : Object(kKind) {}
};

/// The memory of one call; given back with its last buffer.
struct UserDriver::Batch {
  Batch(Npu& owner, size_t bytes) : npu(owner), memory(owner.take(bytes)) {}
  ~Batch() {
    if (memory != nullptr) npu.give_back(memory);
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  Npu& npu;
  uint8_t* const memory;
};

struct UserDriver::Buffer final : Object {
  static constexpr Kind kKind = kBuffer;
  Buffer(std::shared_ptr<Batch> of, size_t at, size_t bytes)
      : Object(kKind), batch(std::move(of)), offset(at), size(bytes) {}
  std::shared_ptr<Batch> batch;
  size_t offset, size;
};

struct UserDriver::Network final : Object {
  static constexpr Kind kKind = kNetwork;
  Network() : Object(kKind) {}
  std::shared_ptr<Batch> stream;
  Cop2 container;  // its commands are those in `stream`
};

struct UserDriver::Inference final : Object {
  static constexpr Kind kKind = kInference;
  Inference() : Object(kKind) {}
  bool has_ended() const { return state != HIL_ETHOSU_RUNNING; }
  uint32_t state = HIL_ETHOSU_RUNNING;
  bool started = false;
  Ending ending;
  std::string message;
  Span<const uint8_t> commands;
  Span<uint8_t> regions[Npu::kRegions];
  std::vector<std::shared_ptr<Batch>> keeps;  // what it works on
};

namespace {

int fails(int number) {
  errno = number;
  return -1;
}

/// As the kernel's log has it, for whoever looks for the reason of an EINVAL.
int refused(const char* why) {
  HIL_LOG(Error, "ethosu0: refused: %s", why);
  return fails(EINVAL);
}

int network_refused(const char* why) {
  HIL_LOG(Error, "ethosu0: network refused: %s", why);
  return fails(EINVAL);
}

size_t rounded(size_t size) {
  return (size + HIL_ETHOSU_ALIGNMENT - 1) / HIL_ETHOSU_ALIGNMENT * HIL_ETHOSU_ALIGNMENT;
}

template <typename T>
const T* array(uint64_t address) {
  return reinterpret_cast<const T*>(static_cast<uintptr_t>(address));
}

}  // namespace

UserDriver::UserDriver(Npu& npu) : npu_(npu) {}

UserDriver::~UserDriver() {
  if (sram_ != nullptr) npu_.give_back(sram_);
}

int UserDriver::add(std::shared_ptr<Object> object) {
  files_[next_] = std::move(object);
  return next_++;
}

template <typename T>
std::shared_ptr<T> UserDriver::find(int file) const {
  const auto found = files_.find(file);
  if (found == files_.end() || found->second->kind != T::kKind) return nullptr;
  return std::static_pointer_cast<T>(found->second);
}

template <typename T, typename Job>
int UserDriver::with(int file, void* argument, int (UserDriver::*step)(T&, Job&)) {
  const std::shared_ptr<T> object = find<T>(file);
  if (object == nullptr) return fails(files_.count(file) == 0 ? EBADF : ENOTTY);
  return (this->*step)(*object, *static_cast<Job*>(argument));
}

int UserDriver::open(const char* path) {
  if (std::strcmp(path, HIL_ETHOSU_DEVICE) != 0) return fails(ENOENT);
  return add(std::make_shared<Device>());
}

int UserDriver::ioctl(int file, unsigned long request, void* argument) {
  switch (request) {
    case HIL_ETHOSU_CAPABILITIES:
      return with(file, argument, &UserDriver::capabilities);
    case HIL_ETHOSU_CREATE_BUFFERS:
      return with(file, argument, &UserDriver::create_buffers);
    case HIL_ETHOSU_CREATE_NETWORK:
      return with(file, argument, &UserDriver::create_network);
    case HIL_ETHOSU_BUFFER_INFO:
      return with(file, argument, &UserDriver::buffer_info);
    case HIL_ETHOSU_NETWORK_INFO:
      return with(file, argument, &UserDriver::network_info);
    case HIL_ETHOSU_CREATE_INFERENCE:
      return with(file, argument, &UserDriver::create_inference);
    case HIL_ETHOSU_INFERENCE_STATUS:
      return with(file, argument, &UserDriver::status);
    case HIL_ETHOSU_INFERENCE_CANCEL:
      return cancel(file);
    default:
      return fails(ENOTTY);
  }
}

// --- Of the device -----------------------------------------------------------------------------

int UserDriver::capabilities(Device&, hil_ethosu_capabilities& job) {
  job = {};
  if (!npu_.identify(&job.config, &job.id)) return fails(EIO);
  job.version = HIL_ETHOSU_VERSION;
  job.sram_bytes = npu_.sram_bytes();
  return 0;
}

int UserDriver::create_buffers(Device&, hil_ethosu_create_buffers& job) {
  if (job.reserved != 0) return refused("a reserved field is not 0");
  if (job.count == 0 || job.count > HIL_ETHOSU_BATCH_MAX) {
    return refused("no buffer, or too many in one call");
  }
  const uint64_t* sizes = array<uint64_t>(job.sizes);
  size_t bytes = 0;
  for (uint32_t i = 0; i < job.count; ++i) {
    if (sizes[i] == 0) return refused("a buffer of size 0");
    if (sizes[i] > UINT32_MAX) return fails(ENOMEM);
    bytes += rounded(sizes[i]);
  }
  const auto batch = std::make_shared<Batch>(npu_, bytes);
  if (batch->memory == nullptr) return fails(ENOMEM);
  auto* fds = reinterpret_cast<int32_t*>(static_cast<uintptr_t>(job.fds));
  size_t offset = 0;
  for (uint32_t i = 0; i < job.count; ++i) {
    fds[i] = add(std::make_shared<Buffer>(batch, offset, sizes[i]));
    offset += rounded(sizes[i]);
  }
  return 0;
}

int UserDriver::create_network(Device&, hil_ethosu_create_network& job) {
  auto network = std::make_shared<Network>();
  const Span<const uint8_t> given(array<uint8_t>(job.data), job.size);
  Cop2& container = network->container;
  if (read_cop2(given, &container) != Error::Ok) return network_refused("no sound COP2 container");
  if (container.features != 2) return network_refused("features of COP2 that this device has not");
  uint32_t config = 0, id = 0;
  if (!npu_.identify(&config, &id)) return fails(EIO);
  if (!verify_config(config, id, container.config, container.id)) {
    return network_refused("compiled for another NPU");
  }
  if (container.cache_bytes > npu_.sram_bytes()) return network_refused("a cache beyond the SRAM");
  network->stream = std::make_shared<Batch>(npu_, container.commands.size());
  if (network->stream->memory == nullptr) return fails(ENOMEM);
  std::memcpy(network->stream->memory, container.commands.data(), container.commands.size());
  container.commands = {network->stream->memory, container.commands.size()};
  return add(std::move(network));
}

// --- Of a buffer, of a network -----------------------------------------------------------------

int UserDriver::buffer_info(Buffer& buffer, hil_ethosu_buffer_info& job) {
  job = {buffer.size, buffer.offset};
  return 0;
}

int UserDriver::network_info(Network& network, hil_ethosu_network_info& job) {
  const Cop2& of = network.container;
  job = {of.config, of.id, of.cache_bytes, of.commands.size()};
  return 0;
}

ssize_t UserDriver::pread(int file, void* data, size_t size, off_t offset) {
  const std::shared_ptr<Buffer> buffer = find<Buffer>(file);
  if (buffer == nullptr) return fails(EBADF);
  if (offset < 0) return fails(EINVAL);
  const size_t from = static_cast<size_t>(offset);
  if (from >= buffer->size) return 0;
  if (size > buffer->size - from) size = buffer->size - from;
  std::memcpy(data, buffer->batch->memory + buffer->offset + from, size);
  return static_cast<ssize_t>(size);
}

ssize_t UserDriver::pwrite(int file, const void* data, size_t size, off_t offset) {
  const std::shared_ptr<Buffer> buffer = find<Buffer>(file);
  if (buffer == nullptr) return fails(EBADF);
  if (offset < 0) return fails(EINVAL);
  const size_t from = static_cast<size_t>(offset);
  if (size > 0 && from >= buffer->size) return fails(ENOSPC);
  if (size > buffer->size - from) size = buffer->size - from;
  std::memcpy(buffer->batch->memory + buffer->offset + from, data, size);
  return static_cast<ssize_t>(size);
}

/// Buffers of one batch, ascending: the region from the first to the last.
int UserDriver::region_of(uint64_t fds, uint32_t count, Inference& user, Span<uint8_t>* out) {
  if (count > HIL_ETHOSU_BATCH_MAX) return refused("too many buffers");
  std::shared_ptr<Buffer> first, last;
  for (uint32_t i = 0; i < count; ++i) {
    const std::shared_ptr<Buffer> buffer = find<Buffer>(array<int32_t>(fds)[i]);
    if (buffer == nullptr) return refused("a descriptor of no buffer");
    if (first == nullptr) first = buffer;
    if (buffer->batch != first->batch) return refused("buffers of several batches");
    if (last != nullptr && buffer->offset <= last->offset) {
      return refused("buffers in no ascending order");
    }
    last = buffer;
  }
  if (first == nullptr) return 0;
  *out = {first->batch->memory + first->offset, last->offset + last->size - first->offset};
  user.keeps.push_back(first->batch);
  return 0;
}

int UserDriver::whole(int32_t file, Inference& user, Span<uint8_t>* out) {
  if (file <= 0) return 0;
  return region_of(reinterpret_cast<uintptr_t>(&file), 1, user, out);
}

int UserDriver::create_inference(Network& network, hil_ethosu_create_inference& job) {
  if (job.reserved != 0 || job.cycle_counter > 1) return refused("a field is not what it can be");
  if (job.ifm_count == 0 && job.ofm_count == 0) return fails(EBADF);
  auto inference = std::make_shared<Inference>();
  Inference& made = *inference;
  if (whole(job.constant_fd, made, &made.regions[0]) != 0) return -1;
  if (whole(job.intermediate_fd, made, &made.regions[1]) != 0) return -1;
  if (region_of(job.ifm_fds, job.ifm_count, made, &made.regions[3]) != 0) return -1;
  if (region_of(job.ofm_fds, job.ofm_count, made, &made.regions[4]) != 0) return -1;
  const size_t cache = static_cast<size_t>(network.container.cache_bytes);
  if (cache > 0 && sram_ == nullptr) sram_ = npu_.take(npu_.sram_bytes());
  if (cache > 0) made.regions[2] = {sram_, npu_.sram_bytes()};
  made.commands = network.container.commands;
  made.keeps.push_back(network.stream);
  const int file = add(std::move(inference));
  start_next();
  return file;
}

// --- Of an inference ---------------------------------------------------------------------------

/// Descriptors count upwards, and so the queue is in their order.
void UserDriver::start_next() {
  if (working_ != nullptr) return;
  for (const auto& [number, object] : files_) {
    if (object->kind != Object::kInference) continue;
    auto inference = std::static_pointer_cast<Inference>(object);
    if (inference->started || inference->has_ended()) continue;
    inference->started = true;
    working_ = inference;
    npu_.start(inference->commands, {inference->regions, Npu::kRegions});
    return;
  }
}

/// True when the NPU is free. An ending of one that was cancelled is nobody's.
bool UserDriver::await_working(int64_t timeout_ns) {
  if (working_ == nullptr) return true;
  Ending ending;
  if (!npu_.ended(timeout_ns, &ending)) return false;
  if (!working_->has_ended()) {
    working_->ending = ending;
    working_->message = ending.message;
    working_->state = ending.state;
    if (ending.state != HIL_ETHOSU_OK) {
      HIL_LOG(Error, "ethosu0: inference %s: %s",
              ending.state == HIL_ETHOSU_ERROR ? "stopped" : "refused", ending.message);
    }
  }
  working_ = nullptr;
  start_next();
  return true;
}

/// The limit is one for each inference that is waited for.
int UserDriver::poll(int file, int64_t timeout_ns) {
  const std::shared_ptr<Inference> inference = find<Inference>(file);
  if (inference == nullptr) return fails(EBADF);
  while (!inference->has_ended()) {
    if (!await_working(timeout_ns)) return 0;
  }
  return 1;
}

int UserDriver::status(Inference& inference, hil_ethosu_inference_status& job) {
  job = {};
  job.state = inference.state;
  job.npu_status = inference.ending.npu_status;
  job.qread = inference.ending.qread;
  std::strncpy(job.message, inference.message.c_str(), sizeof(job.message) - 1);
  return 0;
}

int UserDriver::cancel(int file) {
  const std::shared_ptr<Inference> inference = find<Inference>(file);
  if (inference == nullptr) return fails(files_.count(file) == 0 ? EBADF : ENOTTY);
  if (!inference->has_ended()) inference->state = HIL_ETHOSU_ABORTED;
  return 0;
}

int UserDriver::close(int file) {
  if (files_.erase(file) == 0) return fails(EBADF);
  return 0;
}

}  // namespace hil::ethosu::linux_driver
