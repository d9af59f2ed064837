// The lines that a value's comparison with the exported graph rests on.
#include "core/digest.h"

#include <doctest/doctest.h>

#include "fake_platform.h"

namespace {

hil::Value tensor_of(uint8_t* data, size_t bytes) {
  hil::Value value;
  value.tag = hil::Tag::Tensor;
  value.tensor = hil::Tensor();
  value.tensor.data = data;
  value.tensor.nbytes = bytes;
  return value;
}

std::string logged(const hil::Value& value) {
  fake::reset();
  fake::take_log();
  hil::log_digest(7, value);
  return fake::take_log();
}

}  // namespace

TEST_CASE("a tensor is one line, a list of tensors one for each, anything else none") {
  uint8_t digits[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  hil::Value tensor = tensor_of(digits, 9);
  CHECK(logged(tensor).find("value_crc32: 7 0 9 cbf43926\n") != std::string::npos);
  hil::Value empty = tensor_of(nullptr, 0);
  hil::Value* both[] = {&tensor, &empty};
  hil::Value list;
  list.tag = hil::Tag::TensorList;
  list.list = {both, 2};
  const std::string lines = logged(list);
  CHECK(lines.find("value_crc32: 7 0 9 cbf43926\n") != std::string::npos);
  CHECK(lines.find("value_crc32: 7 1 0 00000000\n") != std::string::npos);
  CHECK(logged(hil::Value()).empty());
}
