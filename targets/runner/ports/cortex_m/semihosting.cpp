// By itself: BKPT 0xAB, the operation in r0, its parameter block in r1.
#include "ports/semihosting.h"

#include "host_link.h"

#include <cstring>

namespace hil::semihosting {

namespace {

constexpr uint32_t kOpen = 0x01;
constexpr uint32_t kClose = 0x02;
constexpr uint32_t kWrite = 0x05;
constexpr uint32_t kRead = 0x06;
constexpr uint32_t kFlen = 0x0C;
constexpr uint32_t kGetCommandLine = 0x15;
constexpr uint32_t kExitExtended = 0x20;
constexpr uint32_t kApplicationExit = 0x20026;  // ADP_Stopped_ApplicationExit

int call(uint32_t operation, const void* block) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = block;
  __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return static_cast<int>(r0);
}

uint32_t word(const void* pointer) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer));
}

}  // namespace

int open(const char* path, Mode mode) {
  const uint32_t block[3] = {word(path), static_cast<uint32_t>(mode), std::strlen(path)};
  return call(kOpen, block);
}

bool close(int file) {
  const uint32_t block[1] = {static_cast<uint32_t>(file)};
  return call(kClose, block) == 0;
}

int length(int file) {
  const uint32_t block[1] = {static_cast<uint32_t>(file)};
  return call(kFlen, block);
}

// SYS_READ and SYS_WRITE answer with the number of bytes they did not transfer.
bool read(int file, uint8_t* out, size_t count) {
  while (count > 0) {
    const uint32_t block[3] = {static_cast<uint32_t>(file), word(out), count};
    const int answer = call(kRead, block);
    if (answer < 0 || static_cast<size_t>(answer) >= count) return false;
    out += count - static_cast<size_t>(answer);
    count = static_cast<size_t>(answer);
  }
  return true;
}

bool write(int file, const uint8_t* bytes, size_t count) {
  const uint32_t block[3] = {static_cast<uint32_t>(file), word(bytes), count};
  return count == 0 || call(kWrite, block) == 0;
}

bool command_line(char* out, size_t capacity) {
  uint32_t block[2] = {word(out), capacity};
  return call(kGetCommandLine, block) == 0;
}

void exit(int status) {
  const uint32_t block[2] = {kApplicationExit, static_cast<uint32_t>(status)};
  call(kExitExtended, block);
  for (;;) __asm__ volatile("wfi");
}

}  // namespace hil::semihosting

namespace hil {

void end_run(int status) { semihosting::exit(status); }

}  // namespace hil
