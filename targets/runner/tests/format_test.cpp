// Our own vsnprintf against the host's: every log line goes through it.
#include "core/format.h"

#include <climits>
#include <cstdint>
#include <cstdio>
#include <string>

#include <doctest/doctest.h>

#define CHECK_LIKE_LIBC(...)                                      \
  do {                                                            \
    char ours[128], theirs[128];                                  \
    const size_t length = hil::format_to(ours, 128, __VA_ARGS__); \
    std::snprintf(theirs, sizeof(theirs), __VA_ARGS__);           \
    CHECK(std::string(ours) == std::string(theirs));              \
    CHECK(length == std::string(ours).size());                    \
  } while (false)

TEST_CASE("conversions agree with libc") {
  CHECK_LIKE_LIBC("%d %i %u", -5, 0, 7u);
  CHECK_LIKE_LIBC("%d %lld", INT_MIN, LLONG_MIN);
  CHECK_LIKE_LIBC("%llu %zu", ULLONG_MAX, SIZE_MAX);
  CHECK_LIKE_LIBC("%08x|%-8x|%8X|", 0xbeefu, 0xbeefu, 0xbeefu);
  CHECK_LIKE_LIBC("%05d|%-5d|%5d|%*d", -42, -42, -42, 6, 9);
  CHECK_LIKE_LIBC("%s|%8s|%-8s|%.2s|%c|%%", "abc", "abc", "abc", "abc", 'x');
  CHECK_LIKE_LIBC("%hhd %hd %ld", 300, 70000, -1L);
  CHECK_LIKE_LIBC("%f %.3f %8.2f", 1.5, -2.0006, 3.999);
}

TEST_CASE("text that does not fit is cut and terminated") {
  char out[4];
  CHECK(hil::format_to(out, sizeof(out), "%s", "abcdef") == 3);
  CHECK(std::string(out) == "abc");
  CHECK(hil::format_to(out, 0, "%s", "abc") == 0);
}

TEST_CASE("a null string, nan and huge numbers are printed, not followed") {
  char out[32];
  const char* volatile nothing = nullptr;  // volatile: the compiler would refuse to print it
  hil::format_to(out, sizeof(out), "%s %f %f", nothing, 0.0 / 0.0, 1e300);
  CHECK(std::string(out) == "(null) nan huge");
}
