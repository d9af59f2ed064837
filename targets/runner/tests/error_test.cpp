// Names as ExecuTorch prints them; logs are read by name.
#include "core/error.h"

#include <doctest/doctest.h>

#include <string>

TEST_CASE("codes have ExecuTorch's names") {
  CHECK(std::string(hil::error_name(hil::Error::Ok)) == "Ok");
  CHECK(std::string(hil::error_name(hil::Error::OperatorMissing)) == "OperatorMissing");
  CHECK(std::string(hil::error_name(static_cast<hil::Error>(0x32))) == "DelegateInvalidHandle");
  CHECK(std::string(hil::error_name(static_cast<hil::Error>(0x99))) == "Unknown");
}
