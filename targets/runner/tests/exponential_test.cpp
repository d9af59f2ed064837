// exp(x) for x <= 0: every part of the series shows, and the bits are the same in every build.
#include "kernels/exponential.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <initializer_list>

namespace {

uint32_t bits(float value) {
  uint32_t found;
  std::memcpy(&found, &value, sizeof(found));
  return found;
}

/// The mean error in units of the last place where the remainder is near `r`, over all powers.
double mean_error(double r) {
  double sum = 0;
  int count = 0;
  for (int n = -120; n <= -1; ++n) {
    for (int i = -8; i <= 8; ++i) {
      const float x = static_cast<float>(n * 0.6931471805599453 + r + i * 1e-3);
      const double exact = std::exp(static_cast<double>(x));
      const double unit = std::ldexp(1.0, std::ilogb(exact) - 23);
      sum += (static_cast<double>(hil::exponential(x)) - exact) / unit;
      ++count;
    }
  }
  return sum / count;
}

}  // namespace

TEST_CASE("within a few units of the last place everywhere") {
  double worst = 0;
  for (int i = 0; i <= 870000; ++i) {
    const float x = -static_cast<float>(i) * 1e-4f;
    const double exact = std::exp(static_cast<double>(x));
    worst = std::fmax(worst, std::fabs(static_cast<double>(hil::exponential(x)) / exact - 1));
  }
  CHECK(worst < 2.5e-7);
}

TEST_CASE("no part of the series and of ln 2 is amiss on average") {
  for (const double r : {-0.34, -0.2, 0.2, 0.34}) {
    CHECK_MESSAGE(std::fabs(mean_error(r)) < 0.35, r, ": ", mean_error(r));
  }
}

TEST_CASE("the ends") {
  CHECK(bits(hil::exponential(0.0f)) == bits(1.0f));
  CHECK(bits(hil::exponential(-1e30f)) == bits(hil::exponential(hil::kLowestExponent)));
  CHECK(hil::exponential(hil::kLowestExponent) > 1e-38f);
}
