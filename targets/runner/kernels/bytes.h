// Copying and filling bytes. newlib-nano's memcpy moves one byte at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hil {

#if defined(__ARM_FEATURE_MVE)

// memory clobbers stand for "reads source, writes target".
inline void copy_bytes(void* target, const void* source, size_t count) {
  asm volatile(
      "   wlstp.8 lr, %[n], 2f      \n"
      "1: vldrb.8 q0, [%[s]], #16   \n"
      "   vstrb.8 q0, [%[t]], #16   \n"
      "   letp    lr, 1b            \n"
      "2:                           \n"
      : [s] "+r"(source), [t] "+r"(target)
      : [n] "r"(count)
      : "q0", "lr", "memory");
}

inline void fill_bytes(void* target, int8_t value, size_t count) {
  asm volatile(
      "   vdup.8  q0, %[v]          \n"
      "   wlstp.8 lr, %[n], 2f      \n"
      "1: vstrb.8 q0, [%[t]], #16   \n"
      "   letp    lr, 1b            \n"
      "2:                           \n"
      : [t] "+r"(target)
      : [n] "r"(count), [v] "r"(value)
      : "q0", "lr", "memory");
}

#else

inline void copy_bytes(void* target, const void* source, size_t count) {
  if (count != 0) std::memcpy(target, source, count);
}

inline void fill_bytes(void* target, int8_t value, size_t count) {
  if (count != 0) std::memset(target, value, count);
}

#endif

}  // namespace hil
