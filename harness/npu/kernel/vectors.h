// Vectors of integers: what the compiler makes of them depends on the processor, results do not.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace hil::npu {

#if defined(__AVX512BW__)
constexpr int kVector = 16;  // 32-bit lanes of a register
#elif defined(__AVX2__)
constexpr int kVector = 8;
#else
constexpr int kVector = 4;
#endif

constexpr int kLanes = 16;  // elements of one step of the output stage

typedef int32_t Ints __attribute__((vector_size(4 * kVector)));
typedef int16_t Shorts __attribute__((vector_size(2 * kVector)));
typedef int64_t Longs __attribute__((vector_size(64)));
typedef uint64_t Bits __attribute__((vector_size(64)));
typedef int32_t HalfInts __attribute__((vector_size(32)));
typedef int32_t FullInts __attribute__((vector_size(64)));

template <typename To>
To load(const void* from) {
  To result;
  std::memcpy(&result, from, sizeof result);
  return result;
}

template <typename From>
void store(void* to, const From& value) {
  std::memcpy(to, &value, sizeof value);
}

// sum + a.low * b.low + a.high * b.high: each lane holds two 16-bit numbers.
inline Ints multiply_pairs(Ints sum, Ints a, Ints b) {
#if defined(__AVX512BW__) && defined(__AVX512VNNI__)
  return reinterpret_cast<Ints>(_mm512_dpwssd_epi32(
      reinterpret_cast<__m512i>(sum), reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX512BW__)
  return sum + reinterpret_cast<Ints>(
                   _mm512_madd_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return sum + reinterpret_cast<Ints>(
                   _mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#else
  typedef uint32_t Words __attribute__((vector_size(4 * kVector)));
  const Ints low = reinterpret_cast<Ints>(reinterpret_cast<Words>(a) << 16) >> 16;
  const Ints other = reinterpret_cast<Ints>(reinterpret_cast<Words>(b) << 16) >> 16;
  return sum + low * other + (a >> 16) * (b >> 16);
#endif
}

inline Ints broadcast(int32_t value) { return value - Ints{}; }

// Modulo 2**64: lanes that nobody asked for hold anything.
inline Longs add(Longs a, Longs b) {
  return reinterpret_cast<Longs>(reinterpret_cast<Bits>(a) + reinterpret_cast<Bits>(b));
}

inline Longs multiply(Longs a, Longs b) {
  return reinterpret_cast<Longs>(reinterpret_cast<Bits>(a) * reinterpret_cast<Bits>(b));
}

// Of numbers that fit 32 bits.
inline Longs multiply_narrow(Longs a, Longs b) {
#if defined(__AVX512F__)
  return reinterpret_cast<Longs>(
      _mm512_mul_epi32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  __m256i first[2], second[2];  // GCC 12 would take shuffles of 64 bytes apart, too
  std::memcpy(first, &a, sizeof a);
  std::memcpy(second, &b, sizeof b);
  for (int half = 0; half < 2; ++half) {
    first[half] = _mm256_mul_epi32(first[half], second[half]);
  }
  return load<Longs>(first);
#else
  return multiply(a, b);
#endif
}

inline FullInts joined(HalfInts low, HalfInts high) {
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

// The low bits of the numbers. With AVX2 alone, GCC 12 would take bytes out one by one.
template <typename To>
To narrowed(HalfInts low, HalfInts high) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (sizeof(To) == 16) {
    const __m256i shorts = _mm256_packus_epi32(reinterpret_cast<__m256i>(low & 255),
                                               reinterpret_cast<__m256i>(high & 255));
    const __m256i ordered = _mm256_permute4x64_epi64(shorts, 0xD8);  // packed in halves of both
    return reinterpret_cast<To>(
        _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1)));
  }
#endif
  return __builtin_convertvector(joined(low, high), To);
}

// Rounds down; for absolute values below 2**62.
inline Longs shift_right(Longs value, Longs shift) {
#if defined(__AVX512F__)
  return value >> shift;
#else
  const Bits by = reinterpret_cast<Bits>(shift), offset = (UINT64_C(1) << 62) - Bits{};
  return reinterpret_cast<Longs>(((reinterpret_cast<Bits>(value) + offset) >> by) - (offset >> by));
#endif
}

}  // namespace hil::npu
