#include "core/bundle.h"

#include <cstring>

#include "core/log.h"
#include "core/schema.h"
//
#include <bundled_program_schema_generated.h>

namespace hil {

namespace bundle_fb = bundled_program_flatbuffer;

namespace {

constexpr size_t kBundleIdentifierOffset = 4;

Error invalid_bundle(const char* what) {
  HIL_LOG(Error, "invalid bundled program: %s", what);
  return Error::InvalidProgram;
}

/// Byte offset of the element at logical position `index` of a dense tensor.
size_t element_offset(const Tensor& t, const uint8_t* dim_order, const int32_t* index) {
  size_t offset = 0;
  for (size_t i = 0; i < t.rank; ++i) {
    const uint8_t dim = dim_order[i];
    offset = offset * static_cast<size_t>(t.sizes[dim]) + static_cast<size_t>(index[dim]);
  }
  return offset * element_size(t.type);
}

bool advance(const Tensor& t, int32_t* index) {
  for (size_t dim = t.rank; dim-- > 0;) {
    if (++index[dim] < t.sizes[dim]) return true;
    index[dim] = 0;
  }
  return false;
}

/// Calls visit(offset in the method's tensor, offset in the bundle's) until it returns false.
template <typename Visit>
bool for_each_element(const Tensor& t, const uint8_t* bundled_order, Visit visit) {
  int32_t index[kMaxRank] = {};
  if (t.numel == 0) return true;
  do {
    if (!visit(element_offset(t, t.dim_order, index), element_offset(t, bundled_order, index))) {
      return false;
    }
  } while (advance(t, index));
  return true;
}

bool same_description(const bundle_fb::Tensor& bundled, const Tensor& t) {
  if (static_cast<int>(bundled.scalar_type()) != static_cast<int>(t.type)) return false;
  const size_t rank = bundled.sizes() == nullptr ? 0 : bundled.sizes()->size();
  const size_t ordered = bundled.dim_order() == nullptr ? 0 : bundled.dim_order()->size();
  const size_t nbytes = bundled.data() == nullptr ? 0 : bundled.data()->size();
  if (rank != t.rank || ordered != t.rank || nbytes != t.nbytes) return false;
  unsigned seen = 0;
  for (uint32_t i = 0; i < rank; ++i) {
    if (bundled.sizes()->Get(i) != t.sizes[i]) return false;
    const uint8_t dim = bundled.dim_order()->Get(i);
    if (dim >= rank || (seen >> dim & 1u) != 0) return false;
    seen |= 1u << dim;
  }
  return true;
}

const uint8_t* order_of(const bundle_fb::Tensor& bundled) {
  return bundled.dim_order() == nullptr ? nullptr : bundled.dim_order()->data();
}

Span<const uint8_t> data_of(const bundle_fb::Tensor& bundled) {
  return bundled.data() == nullptr
             ? Span<const uint8_t>()
             : Span<const uint8_t>(bundled.data()->data(), bundled.data()->size());
}

Error set_tensor(size_t index, const bundle_fb::Tensor& bundled, Method& method) {
  const Tensor& t = method.input(index).tensor;
  if (method.input(index).tag != Tag::Tensor || !same_description(bundled, t)) {
    HIL_LOG(Error, "bundled input %zu does not match the method's input", index);
    return Error::InvalidArgument;
  }
  const Span<const uint8_t> data = data_of(bundled);
  HIL_TRY(method.set_input(index, data));
  if (t.rank == 0) return Error::Ok;
  const size_t width = element_size(t.type);
  for_each_element(t, order_of(bundled), [&](size_t to, size_t from) {
    std::memcpy(t.data + to, data.data() + from, width);
    return true;
  });
  return Error::Ok;
}

template <typename T>
Error set_scalar(Method& method, size_t index, T value) {
  return method.set_input(
      index, Span<const uint8_t>(reinterpret_cast<const uint8_t*>(&value), sizeof(value)));
}

Error set_value(size_t index, const bundle_fb::Value& value, Method& method) {
  if (value.val() == nullptr || index >= method.input_count())
    return invalid_bundle("a test input");
  switch (value.val_type()) {
    case bundle_fb::ValueUnion_Tensor:
      return set_tensor(index, *value.val_as_Tensor(), method);
    case bundle_fb::ValueUnion_Int:
      return set_scalar(method, index, value.val_as_Int()->int_val());
    case bundle_fb::ValueUnion_Double:
      return set_scalar(method, index, value.val_as_Double()->double_val());
    case bundle_fb::ValueUnion_Bool:
      return set_scalar(method, index, static_cast<uint8_t>(value.val_as_Bool()->bool_val()));
    default:
      return invalid_bundle("a test input of unknown type");
  }
}

bool close(double actual, double expected, double rtol, double atol) {
  if (actual != actual || expected != expected) return actual != actual && expected != expected;
  if (actual == expected) return true;  // infinities too
  const double difference = actual < expected ? expected - actual : actual - expected;
  return difference <= atol + rtol * (expected < 0 ? -expected : expected);
}

template <typename T>
T load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

bool tensors_match(const Tensor& t, const bundle_fb::Tensor& bundled, double rtol, double atol) {
  if (!same_description(bundled, t) || (t.data == nullptr && t.nbytes > 0)) return false;
  const uint8_t* expected = data_of(bundled).data();
  return for_each_element(t, order_of(bundled), [&](size_t a, size_t b) {
    if (t.type == ScalarType::Float) {
      return close(static_cast<double>(load<float>(t.data + a)),
                   static_cast<double>(load<float>(expected + b)), rtol, atol);
    }
    if (t.type == ScalarType::Double) {
      return close(load<double>(t.data + a), load<double>(expected + b), rtol, atol);
    }
    return std::memcmp(t.data + a, expected + b, element_size(t.type)) == 0;
  });
}

bool matches(const Value& actual, const bundle_fb::Value& expected, double rtol, double atol) {
  if (expected.val() == nullptr) return false;
  switch (expected.val_type()) {
    case bundle_fb::ValueUnion_Tensor:
      return actual.tag == Tag::Tensor &&
             tensors_match(actual.tensor, *expected.val_as_Tensor(), rtol, atol);
    case bundle_fb::ValueUnion_Int:
      return actual.tag == Tag::Int && actual.as_int == expected.val_as_Int()->int_val();
    case bundle_fb::ValueUnion_Bool:
      return actual.tag == Tag::Bool && actual.as_bool == expected.val_as_Bool()->bool_val();
    case bundle_fb::ValueUnion_Double:
      return actual.tag == Tag::Double &&
             close(actual.as_double, expected.val_as_Double()->double_val(), rtol, atol);
    default:
      return false;
  }
}

}  // namespace

bool is_bundle(Span<const uint8_t> bytes) {
  return bytes.size() >= kBundleIdentifierOffset + 4 &&
         std::memcmp(bytes.data() + kBundleIdentifierOffset, "BP", 2) == 0;
}

Error Bundle::load(Span<const uint8_t> bytes) {
  root_ = nullptr;
  if (!is_bundle(bytes)) return invalid_bundle("no bundled program");
  if (std::memcmp(bytes.data() + kBundleIdentifierOffset, bundle_fb::BundledProgramIdentifier(),
                  4) != 0) {
    HIL_LOG(Error, "bundled program version %.4s is not supported, this runner reads %s",
            reinterpret_cast<const char*>(bytes.data() + kBundleIdentifierOffset),
            bundle_fb::BundledProgramIdentifier());
    return Error::InvalidProgram;
  }
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) return invalid_bundle("larger than 2 GiB");
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  if (!bundle_fb::VerifyBundledProgramBuffer(verifier)) {
    return invalid_bundle("FlatBuffers verification failed");
  }
  const bundle_fb::BundledProgram* root = bundle_fb::GetBundledProgram(bytes.data());
  if (root->program() == nullptr) return invalid_bundle("it holds no program");
  root_ = root;
  program_ = Span<const uint8_t>(root->program()->data(), root->program()->size());
  return Error::Ok;
}

const bundle_fb::BundledMethodTestSuite* Bundle::suite(const char* method) const {
  if (root_ == nullptr || root_->method_test_suites() == nullptr) return nullptr;
  for (const bundle_fb::BundledMethodTestSuite* candidate : *root_->method_test_suites()) {
    if (candidate->method_name() != nullptr &&
        std::strcmp(candidate->method_name()->c_str(), method) == 0) {
      return candidate;
    }
  }
  return nullptr;
}

size_t Bundle::case_count(const char* method) const {
  const auto* found = suite(method);
  return found == nullptr || found->test_cases() == nullptr ? 0 : found->test_cases()->size();
}

Error Bundle::set_inputs(const char* method, size_t index, Method& out) const {
  if (index >= case_count(method)) return Error::InvalidArgument;
  const auto* inputs = suite(method)->test_cases()->Get(static_cast<uint32_t>(index))->inputs();
  const size_t count = inputs == nullptr ? 0 : inputs->size();
  if (count != out.input_count()) {
    HIL_LOG(Error, "wrong number of inputs: expected %zu, the bundled test case has %zu",
            out.input_count(), count);
    return Error::InvalidArgument;
  }
  for (size_t i = 0; i < count; ++i) {
    HIL_TRY(set_value(i, *inputs->Get(static_cast<uint32_t>(i)), out));
  }
  return Error::Ok;
}

Error Bundle::compare_outputs(const char* method, size_t index, const Method& actual, double rtol,
                              double atol, bool* equal) const {
  *equal = false;
  if (index >= case_count(method)) return Error::InvalidArgument;
  const auto* expected =
      suite(method)->test_cases()->Get(static_cast<uint32_t>(index))->expected_outputs();
  const size_t count = expected == nullptr ? 0 : expected->size();
  if (count != actual.output_count() || count == 0) {
    HIL_LOG(Error, "wrong number of expected outputs: the method has %zu, the bundle %zu",
            actual.output_count(), count);
    return Error::InvalidArgument;
  }
  for (size_t i = 0; i < count; ++i) {
    if (!matches(actual.output(i), *expected->Get(static_cast<uint32_t>(i)), rtol, atol)) {
      HIL_LOG(Error, "output %zu differs from the bundled expected output", i);
      return Error::Ok;
    }
  }
  *equal = true;
  return Error::Ok;
}

}  // namespace hil
