// Bundled programs: layouts that differ, tolerances, and bundles that do not fit their method.
#include "core/bundle.h"

#include <doctest/doctest.h>

#include <cstring>

#include "bundled_program_schema_generated.h"
#include "loaded_method.h"

namespace {

build::BundledTensor vector4(const build::Bytes& data) { return {{4}, {0}, data}; }

build::Bytes floats(const std::vector<float>& values) {
  build::Bytes bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// A method whose input is also its output.
build::Bytes identity(build::fb::ScalarType type, const std::vector<int32_t>& sizes,
                      const std::vector<uint8_t>& order) {
  build::PlanBuilder plan;
  build::TensorInfo info;
  info.type = type;
  info.sizes = sizes;
  info.dim_order = order;
  info.offset = 0;
  plan.inputs = {plan.tensor(info)};
  plan.outputs = {0};
  return plan.file();
}

struct Loaded {
  Loaded(const build::Bytes& program, const std::vector<build::BundledCase>& cases)
      : file(build::bundle(program, cases)), method(program) {
    error = bundle.load({file.data(), file.size()});
  }
  build::Aligned file;
  LoadedMethod method;
  hil::Bundle bundle;
  hil::Error error;
};

bool passes(const build::Bytes& program, const build::BundledCase& test) {
  Loaded loaded(program, {test});
  bool equal = false;
  REQUIRE(loaded.error == hil::Error::Ok);
  REQUIRE(loaded.bundle.set_inputs("forward", 0, loaded.method.method) == hil::Error::Ok);
  REQUIRE(loaded.method.method.execute() == hil::Error::Ok);
  REQUIRE(loaded.bundle.compare_outputs("forward", 0, loaded.method.method, 0.01, 0.01, &equal) ==
          hil::Error::Ok);
  return equal;
}

namespace bp = bundled_program_flatbuffer;

flatbuffers::Offset<void> scalar(flatbuffers::FlatBufferBuilder& fbb, bp::ValueUnion type,
                                 double value) {
  switch (type) {
    case bp::ValueUnion_Bool:
      return bp::CreateBool(fbb, value != 0).Union();
    case bp::ValueUnion_Int:
      return bp::CreateInt(fbb, static_cast<int64_t>(value)).Union();
    default:
      return bp::CreateDouble(fbb, value).Union();
  }
}

/// Of a method that gives back its input, a scalar.
bool scalar_passes(bp::ValueUnion type, double input, double expected) {
  build::PlanBuilder plan;
  plan.inputs = {type == bp::ValueUnion_Bool  ? plan.boolean(false)
                 : type == bp::ValueUnion_Int ? plan.integer(0)
                                              : plan.number(0)};
  plan.outputs = plan.inputs;
  const build::Bytes program = plan.file();
  flatbuffers::FlatBufferBuilder fbb;
  const auto values = [&](double value) {
    const auto content = scalar(fbb, type, value);
    return std::vector<flatbuffers::Offset<bp::Value>>{bp::CreateValue(fbb, type, content)};
  };
  const auto inputs = values(input), outputs = values(expected);
  std::vector<flatbuffers::Offset<bp::BundledMethodTestCase>> cases = {
      bp::CreateBundledMethodTestCaseDirect(fbb, &inputs, &outputs)};
  std::vector<flatbuffers::Offset<bp::BundledMethodTestSuite>> suites = {
      bp::CreateBundledMethodTestSuiteDirect(fbb, "forward", &cases)};
  fbb.ForceVectorAlignment(program.size(), 1, 32);
  const auto inner = fbb.CreateVector(program);
  fbb.Finish(bp::CreateBundledProgram(fbb, 0, fbb.CreateVector(suites), inner), "BP08");
  const build::Aligned file(
      build::Bytes(fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize()));
  LoadedMethod loaded(program);
  hil::Bundle bundle;
  REQUIRE(bundle.load({file.data(), file.size()}) == hil::Error::Ok);
  REQUIRE(bundle.set_inputs("forward", 0, loaded.method) == hil::Error::Ok);
  bool equal = false;
  REQUIRE(bundle.compare_outputs("forward", 0, loaded.method, 0.01, 0.01, &equal) ==
          hil::Error::Ok);
  return equal;
}

}  // namespace

TEST_CASE("integers must be equal") {
  const build::Bytes data = {1, 2, 3, 4};
  CHECK(passes(build::copy_program(), {{vector4(data)}, {vector4(data)}}));
  CHECK_FALSE(passes(build::copy_program(), {{vector4(data)}, {vector4({1, 2, 3, 5})}}));
}

TEST_CASE("every byte of a wide integer is compared") {
  const struct {
    build::fb::ScalarType type;
    size_t width;
  } types[] = {{build::fb::ScalarType_SHORT, 2},
               {build::fb::ScalarType_UINT16, 2},
               {build::fb::ScalarType_INT, 4},
               {build::fb::ScalarType_LONG, 8}};
  for (const auto& each : types) {
    const auto program = identity(each.type, {2}, {0});
    const build::Bytes data(2 * each.width, 7);
    const auto test = [&](const build::Bytes& expected) {
      return passes(program, {{{{2}, {0}, data, each.type}}, {{{2}, {0}, expected, each.type}}});
    };
    CHECK(test(data));
    for (size_t i = 0; i < data.size(); ++i) {
      build::Bytes other = data;
      other[i] = 8;
      CHECK_FALSE_MESSAGE(test(other), "type ", static_cast<int>(each.type), " byte ", i);
    }
  }
}

TEST_CASE("doubles must be close, in all their bytes") {
  const auto type = build::fb::ScalarType_DOUBLE;
  const auto program = identity(type, {1}, {0});
  const auto test = [&](double actual, double expected) {
    build::Bytes given(8), wanted(8);
    std::memcpy(given.data(), &actual, 8);
    std::memcpy(wanted.data(), &expected, 8);
    return passes(program, {{{{1}, {0}, given, type}}, {{{1}, {0}, wanted, type}}});
  };
  CHECK(test(1.0, 1.019));
  CHECK_FALSE(test(1.0, 1.021));
  CHECK_FALSE(test(1.0, -1.0));
}

TEST_CASE("every output is compared") {
  build::PlanBuilder plan;
  build::TensorInfo info;
  for (int64_t i = 0; i < 3; ++i) {
    info.offset = 16 * i;
    plan.inputs.push_back(plan.tensor(info));
  }
  plan.outputs = plan.inputs;
  const build::Bytes program = plan.file();
  const build::Bytes right = {1, 2, 3, 4}, wrong = {1, 2, 3, 5};
  const std::vector<build::BundledTensor> inputs(3, vector4(right));
  CHECK(passes(program, {inputs, inputs}));
  for (size_t i = 0; i < 3; ++i) {
    std::vector<build::BundledTensor> expected = inputs;
    expected[i] = vector4(wrong);
    CHECK_FALSE_MESSAGE(passes(program, {inputs, expected}), "output ", i);
  }
}

TEST_CASE("floats must be close") {
  const auto type = build::fb::ScalarType_FLOAT;
  const auto program = identity(type, {2}, {0});
  const auto test = [&](float actual, float expected) {
    return passes(program, {{{{2}, {0}, floats({0, actual}), type}},
                            {{{2}, {0}, floats({0, expected}), type}}});
  };
  CHECK(test(1.0f, 1.019f));
  CHECK_FALSE(test(1.0f, 1.021f));
  CHECK(test(100.0f, 101.0f));
  CHECK_FALSE(test(100.0f, 102.0f));
  CHECK(test(__builtin_nanf(""), __builtin_nanf("")));
  CHECK_FALSE(test(__builtin_nanf(""), 0.0f));
  CHECK(test(__builtin_inff(), __builtin_inff()));
  CHECK_FALSE(test(__builtin_inff(), 1.0f));
  CHECK(test(-100.0f, -101.0f));
}

TEST_CASE("scalars must be equal, or close") {
  for (const double value : {0.0, 1.0}) {
    for (const auto type : {bp::ValueUnion_Bool, bp::ValueUnion_Int, bp::ValueUnion_Double}) {
      CHECK(scalar_passes(type, value, value));
      CHECK_FALSE(scalar_passes(type, value, 1.0 - value));
    }
  }
  CHECK(scalar_passes(bp::ValueUnion_Double, 1.0, 1.019));
  CHECK_FALSE(scalar_passes(bp::ValueUnion_Int, int64_t{1} << 40, 0.0));
}

TEST_CASE("a bundle in another dim order is rearranged") {
  // Logical 1x2x1x3, NHWC in the method, NCHW in the bundle.
  const auto program = identity(build::fb::ScalarType_CHAR, {1, 2, 1, 3}, {0, 2, 3, 1});
  const build::BundledTensor nchw = {{1, 2, 1, 3}, {0, 1, 2, 3}, {1, 2, 3, 4, 5, 6}};
  Loaded loaded(program, {{{nchw}, {nchw}}});
  REQUIRE(loaded.bundle.set_inputs("forward", 0, loaded.method.method) == hil::Error::Ok);
  CHECK(loaded.method.output(0) == build::Bytes{1, 4, 2, 5, 3, 6});
  CHECK(passes(program, {{nchw}, {nchw}}));
}

TEST_CASE("wide elements are rearranged whole") {
  const auto type = build::fb::ScalarType_SHORT;
  const auto program = identity(type, {1, 2, 1, 2}, {0, 2, 3, 1});
  const build::BundledTensor nchw = {
      {1, 2, 1, 2}, {0, 1, 2, 3}, {1, 11, 2, 12, 3, 13, 4, 14}, type};
  Loaded loaded(program, {{{nchw}, {nchw}}});
  REQUIRE(loaded.bundle.set_inputs("forward", 0, loaded.method.method) == hil::Error::Ok);
  CHECK(loaded.method.output(0) == build::Bytes{1, 11, 3, 13, 2, 12, 4, 14});
}

TEST_CASE("test cases that do not fit the method are refused") {
  const build::Bytes data = {1, 2, 3, 4};
  const auto refuse = [&](const std::vector<build::BundledTensor>& inputs, const char* reason) {
    Loaded loaded(build::copy_program(), {{inputs, {vector4(data)}}});
    REQUIRE(loaded.error == hil::Error::Ok);
    CHECK(loaded.bundle.set_inputs("forward", 0, loaded.method.method) ==
          hil::Error::InvalidArgument);
    const std::string log = fake::take_log();
    CHECK_MESSAGE(fake::contains(log, reason), reason, " missing in ", log);
  };
  refuse({}, "wrong number of inputs: expected 1, the bundled test case has 0");
  refuse({{{3}, {0}, {1, 2, 3}}}, "bundled input 0 does not match");
  refuse({{{2, 2}, {0, 1}, data}}, "bundled input 0 does not match");
  refuse({{{4}, {7}, data}}, "bundled input 0 does not match");
  refuse({{{4}, {0}, {1}}}, "bundled input 0 does not match");
  refuse({{{4}, {0}, data, build::fb::ScalarType_BYTE}}, "bundled input 0 does not match");
  refuse({{{4}, {0}, data, build::fb::ScalarType_BOOL}}, "bundled input 0 does not match");
}

TEST_CASE("sizes are compared one by one") {
  const build::Bytes data = {1, 2, 3, 4};
  const auto program = identity(build::fb::ScalarType_CHAR, {2, 2}, {0, 1});
  Loaded loaded(program, {{{{{4, 1}, {0, 1}, data}}, {}}});
  REQUIRE(loaded.error == hil::Error::Ok);
  CHECK(loaded.bundle.set_inputs("forward", 0, loaded.method.method) ==
        hil::Error::InvalidArgument);
}

TEST_CASE("a case with other than all outputs proves nothing") {
  build::PlanBuilder plan;
  build::TensorInfo info;
  for (const int64_t offset : {0, 16}) {
    info.offset = offset;
    plan.inputs.push_back(plan.tensor(info));
  }
  plan.outputs = plan.inputs;
  const build::Bytes program = plan.file();
  const build::BundledTensor right = vector4({1, 2, 3, 4});
  for (const size_t count : {1, 3}) {
    Loaded loaded(program, {{{right, right}, std::vector<build::BundledTensor>(count, right)}});
    REQUIRE(loaded.bundle.set_inputs("forward", 0, loaded.method.method) == hil::Error::Ok);
    bool equal = true;
    CHECK(loaded.bundle.compare_outputs("forward", 0, loaded.method.method, 0, 0, &equal) ==
          hil::Error::InvalidArgument);
    CHECK_FALSE(equal);
    CHECK(fake::contains(fake::take_log(), "wrong number of expected outputs: the method has 2"));
  }
}

TEST_CASE("a case without expected outputs proves nothing") {
  Loaded loaded(build::copy_program(), {{{vector4({1, 2, 3, 4})}, {}}});
  bool equal = true;
  CHECK(loaded.bundle.compare_outputs("forward", 0, loaded.method.method, 0, 0, &equal) ==
        hil::Error::InvalidArgument);
  CHECK_FALSE(equal);
  CHECK(loaded.bundle.case_count("forward") == 1);
  CHECK(loaded.bundle.case_count("other") == 0);
  CHECK(loaded.bundle.set_inputs("forward", 1, loaded.method.method) ==
        hil::Error::InvalidArgument);
}

TEST_CASE("versions and damage") {
  fake::reset();
  fake::take_log();
  hil::Bundle bundle;
  const build::Aligned old(build::bundle(build::copy_program(), {}, "forward", "BP07"));
  CHECK(hil::is_bundle({old.data(), old.size()}));
  CHECK(bundle.load({old.data(), old.size()}) == hil::Error::InvalidProgram);
  CHECK(fake::contains(fake::take_log(), "bundled program version BP07 is not supported"));
  build::Bytes damaged = build::bundle(build::copy_program(), {});
  damaged[0] = damaged[1] = 0xff;
  const build::Aligned aligned(damaged);
  CHECK(bundle.load({aligned.data(), aligned.size()}) == hil::Error::InvalidProgram);
  CHECK(fake::contains(fake::take_log(), "FlatBuffers verification failed"));
  const build::Aligned program(build::copy_program());
  CHECK_FALSE(hil::is_bundle({program.data(), program.size()}));
  CHECK(bundle.load({program.data(), program.size()}) == hil::Error::InvalidProgram);
}
