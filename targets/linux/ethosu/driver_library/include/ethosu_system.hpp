// The calls of the operating system that the driver library makes. Not of Arm's library: here,
// whoever links a strong EthosU::system() puts something else in the kernel's place.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/types.h>

namespace EthosU {

/// Each as its name says (section 2 of the manual), with errno.
class System {
 public:
  virtual int open(const char* path) = 0;
  virtual int ioctl(int file, unsigned long request, void* argument) = 0;
  virtual ssize_t pread(int file, void* data, size_t size, off_t offset) = 0;
  virtual ssize_t pwrite(int file, const void* data, size_t size, off_t offset) = 0;
  /// 1: ready, 0: not within so many nanoseconds (negative: for ever).
  virtual int poll(int file, int64_t timeout_ns) = 0;
  virtual int close(int file) = 0;

 protected:
  ~System() = default;
};

/// Linux itself, unless a program brings another.
System& system();

}  // namespace EthosU
