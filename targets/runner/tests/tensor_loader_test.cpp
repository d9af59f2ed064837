// Shapes, places and data of serialized tensors: each field wrong once.
#include "core/tensor_loader.h"

#include <doctest/doctest.h>

#include "loaded_method.h"

namespace {

void check(const build::TensorInfo& info, hil::Error error, const char* reason,
           const build::Bytes& constant = {}) {
  build::PlanBuilder plan;
  if (!constant.empty()) plan.constant(constant);
  plan.tensor(info);
  const LoadedMethod loaded(plan.file());
  CHECK(loaded.error == error);
  const std::string log = fake::take_log();
  CHECK_MESSAGE(fake::contains(log, reason), reason, " missing in ", log);
}

build::TensorInfo planned() {
  build::TensorInfo info;
  info.offset = 0;
  return info;
}

}  // namespace

TEST_CASE("shapes") {
  build::TensorInfo info = planned();
  check(info, hil::Error::Ok, "");
  info.sizes = {-1};
  check(info, hil::Error::InvalidProgram, "sizes negative or too large");
  info.sizes = {65536, 65536, 65536, 65536};
  info.dim_order = {0, 1, 2, 3};
  check(info, hil::Error::InvalidProgram, "sizes negative or too large");
  info.dim_order = {0, 1, 2};
  check(info, hil::Error::InvalidProgram, "dim order and sizes differ in length");
  info.sizes = {65536, 65536, 65536};
  check(info, hil::Error::InvalidProgram, "sizes negative or too large");
  info.sizes = {1, 1};
  info.dim_order = {0, 0};
  check(info, hil::Error::InvalidProgram, "dim order is no permutation");
  info.dim_order = {0, 2};
  check(info, hil::Error::InvalidProgram, "dim order is no permutation");
  info.sizes = std::vector<int32_t>(9, 1);
  info.dim_order = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  check(info, hil::Error::InvalidProgram, "too many dimensions");
}

TEST_CASE("a zero extent makes huge other extents harmless") {
  build::TensorInfo info = planned();
  info.sizes = {0, 0x7fffffff, 0x7fffffff};
  info.dim_order = {0, 1, 2};
  check(info, hil::Error::Ok, "");
}

TEST_CASE("types and kinds") {
  build::TensorInfo info = planned();
  info.type = build::fb::ScalarType_QINT8;
  check(info, hil::Error::NotSupported, "scalar type 12 are not supported");
  info = planned();
  info.storage_offset = 1;
  check(info, hil::Error::InvalidProgram, "storage offset is not zero");
  info = planned();
  info.dynamism = build::fb::TensorShapeDynamism_DYNAMIC_UNBOUND;
  check(info, hil::Error::NotSupported, "unbounded dynamic shape");
  info = planned();
  info.external = true;
  check(info, hil::Error::InvalidExternalData, "outside the program file");
}

TEST_CASE("planned places") {
  build::TensorInfo info = planned();
  info.offset = 60;
  check(info, hil::Error::Ok, "");
  info.offset = 61;
  check(info, hil::Error::InvalidProgram, "lies outside the planned buffer");
  info.offset = int64_t{1} << 33;
  check(info, hil::Error::InvalidProgram, "lies outside the planned buffer");
  info = planned();
  for (const uint32_t id : {0u, 2u, 0xffffffffu}) {
    info.memory_id = id;
    check(info, hil::Error::InvalidProgram, "memory id out of range");
  }
  info = planned();
  info.type = build::fb::ScalarType_INT;
  info.sizes = {1};
  info.offset = 2;
  check(info, hil::Error::InvalidProgram, "not aligned to its element size");
}

TEST_CASE("constants") {
  build::TensorInfo info;
  info.constant = 1;
  check(info, hil::Error::Ok, "", {1, 2, 3, 4});
  info.sizes = {1000};
  check(info, hil::Error::InvalidProgram, "outside its segment", {1, 2, 3, 4});
  info.constant = 5;
  check(info, hil::Error::InvalidProgram, "data buffer index out of range", {1, 2, 3, 4});
}

TEST_CASE("a mutable tensor starts with its initial state") {
  build::PlanBuilder plan;
  build::TensorInfo info = planned();
  info.constant = plan.initial_state({5, 6, 7, 8});
  plan.outputs = {plan.tensor(info)};
  LoadedMethod loaded(plan.file());
  REQUIRE(loaded.error == hil::Error::Ok);
  CHECK(loaded.output(0) == build::Bytes{5, 6, 7, 8});
}
