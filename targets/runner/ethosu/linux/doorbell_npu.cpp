#include "ethosu/linux/doorbell_npu.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hil::ethosu::linux_driver {

using doorbell::Command;
using doorbell::Mailbox;
using doorbell::Result;

namespace {

constexpr size_t kAlignment = 16;
constexpr int64_t kNsPerS = 1000000000;
constexpr char kSilent[] = "the NPU does not answer";

}  // namespace

DoorbellNpu::~DoorbellNpu() {
  for (int file : {request_, answer_}) {
    if (file >= 0) ::close(file);
  }
  if (memory_ != nullptr) ::munmap(memory_, size_);
}

bool DoorbellNpu::reach() {
  if (mailbox_ != nullptr) return true;
  const int file = ::open(doorbell::kMemoryFile, O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  struct stat status;
  const bool known = ::fstat(file, &status) == 0;
  size_ = known ? static_cast<size_t>(status.st_size) : 0;
  void* mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (mapped == MAP_FAILED) return false;
  memory_ = static_cast<uint8_t*>(mapped);
  answer_ = ::open(doorbell::kAnswerFifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  request_ = ::open(doorbell::kRequestFifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (answer_ < 0 || request_ < 0) return false;
  mailbox_ = reinterpret_cast<Mailbox*>(take(sizeof(Mailbox)));
  return mailbox_ != nullptr;
}

uint64_t DoorbellNpu::address(const uint8_t* memory) const {
  return doorbell::kMemoryBase + static_cast<uint64_t>(memory - memory_);
}

/// The first gap that is wide enough.
uint8_t* DoorbellNpu::take(size_t bytes) {
  if (memory_ == nullptr || bytes > size_) return nullptr;
  size_t begin = 0;
  for (const auto& [from, to] : taken_) {
    if (from - begin >= bytes) break;
    begin = (to + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (begin > size_ || bytes > size_ - begin) return nullptr;
  taken_[begin] = begin + bytes;
  std::memset(memory_ + begin, 0, bytes);
  return memory_ + begin;
}

void DoorbellNpu::give_back(uint8_t* memory) {
  taken_.erase(static_cast<size_t>(memory - memory_));
}

bool DoorbellNpu::ring(Command command) {
  Mailbox& mailbox = *mailbox_;
  mailbox.magic = doorbell::kMailboxMagic;
  mailbox.version = doorbell::kVersion;
  mailbox.command = static_cast<uint32_t>(command);
  mailbox.result = static_cast<uint32_t>(Result::Refused);
  mailbox.message[0] = '\0';
  doorbell::Ring ring;
  ring.sequence = ++sequence_;
  ring.mailbox = address(reinterpret_cast<uint8_t*>(mailbox_));
  __sync_synchronize();
  rung_ = ::write(request_, &ring, sizeof(ring)) == static_cast<ssize_t>(sizeof(ring));
  return rung_;
}

/// False: not yet. `sound`: it was the answer, not the end of the other side.
bool DoorbellNpu::answered(int64_t timeout_ns, bool* sound) {
  *sound = false;
  if (!rung_) return true;
  struct pollfd asked = {answer_, POLLIN, 0};
  const struct timespec limit = {static_cast<time_t>(timeout_ns / kNsPerS),
                                 static_cast<long>(timeout_ns % kNsPerS)};
  const int ready = ::ppoll(&asked, 1, timeout_ns < 0 ? nullptr : &limit, nullptr);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return false;
  uint32_t sequence = 0;
  const ssize_t got = ::read(answer_, &sequence, sizeof(sequence));
  *sound = got == static_cast<ssize_t>(sizeof(sequence)) && sequence == sequence_;
  rung_ = false;
  __sync_synchronize();
  mailbox_->message[doorbell::kMessageBytes - 1] = '\0';
  return true;
}

bool DoorbellNpu::identify(uint32_t* config, uint32_t* id) {
  if (!reach()) return false;
  if (*config = mailbox_->npu_config, *id = mailbox_->npu_id; *config != 0) return true;
  bool sound = ring(Command::Identify);
  if (!sound || !answered(-1, &sound) || !sound) return false;
  *config = mailbox_->npu_config;
  *id = mailbox_->npu_id;
  return mailbox_->result == static_cast<uint32_t>(Result::Ok);
}

void DoorbellNpu::start(Span<const uint8_t> commands, Span<const Span<uint8_t>> regions) {
  Mailbox& mailbox = *mailbox_;
  mailbox.commands = address(commands.data());
  mailbox.commands_bytes = commands.size();
  mailbox.region_count = static_cast<uint32_t>(regions.size());
  mailbox.reserved = 0;
  for (size_t i = 0; i < doorbell::kRegions; ++i) {
    mailbox.regions[i] = {};
    if (i < regions.size() && !regions[i].empty()) {
      mailbox.regions[i] = {address(regions[i].data()), regions[i].size()};
    }
  }
  ring(Command::Run);
}

bool DoorbellNpu::ended(int64_t timeout_ns, Ending* out) {
  bool sound = false;
  if (!answered(timeout_ns, &sound)) return false;
  *out = {HIL_ETHOSU_REJECTED, 0, 0, sound ? mailbox_->message : kSilent};
  if (!sound) return true;
  const auto result = static_cast<Result>(mailbox_->result);
  if (result == Result::Ok) out->state = HIL_ETHOSU_OK;
  if (result == Result::Fault) {
    out->state = HIL_ETHOSU_ERROR;
    out->npu_status = mailbox_->npu_status;
    out->qread = mailbox_->qread;
  }
  return true;
}

}  // namespace hil::ethosu::linux_driver
