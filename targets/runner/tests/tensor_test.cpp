// Layout questions that kernels ask before they index memory.
#include "core/tensor.h"

#include <doctest/doctest.h>

namespace {

hil::Tensor make(const int32_t* sizes, const uint8_t* order, size_t rank) {
  hil::Tensor t;
  t.rank = static_cast<uint8_t>(rank);
  t.sizes = sizes;
  t.dim_order = order;
  return t;
}

}  // namespace

TEST_CASE("layouts, with dimensions of extent 1 ignored") {
  const uint8_t nchw[] = {0, 1, 2, 3}, nhwc[] = {0, 2, 3, 1}, odd[] = {3, 2, 1, 0};
  const int32_t image[] = {1, 3, 4, 5}, gray[] = {1, 1, 4, 5}, pixel[] = {1, 3, 1, 1};
  CHECK(hil::is_contiguous(make(image, nchw, 4)));
  CHECK_FALSE(hil::is_contiguous(make(image, nhwc, 4)));
  CHECK(hil::is_channels_last(make(image, nhwc, 4)));
  CHECK_FALSE(hil::is_channels_last(make(image, nchw, 4)));
  CHECK(hil::is_contiguous(make(gray, nhwc, 4)));
  CHECK(hil::is_channels_last(make(gray, nchw, 4)));
  CHECK(hil::is_channels_last(make(pixel, odd, 4)));
  CHECK_FALSE(hil::is_channels_last(make(image, odd, 4)));
  CHECK(hil::is_contiguous(make(nullptr, nullptr, 0)));
  CHECK_FALSE(hil::is_channels_last(make(image, nchw, 3)));
}

TEST_CASE("same_shape compares type, rank and sizes") {
  const int32_t a[] = {2, 3}, b[] = {2, 4};
  const uint8_t order[] = {0, 1};
  hil::Tensor t = make(a, order, 2);
  CHECK(hil::same_shape(t, make(a, order, 2)));
  CHECK_FALSE(hil::same_shape(t, make(b, order, 2)));
  CHECK_FALSE(hil::same_shape(t, make(a, order, 1)));
  t.type = hil::ScalarType::Int;
  CHECK_FALSE(hil::same_shape(t, make(a, order, 2)));
}
