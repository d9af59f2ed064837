// One delegate, loaded over the fake NPU, with tensors for its arguments.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/program.h"
#include "ethosu/backend.h"
#include "fake_npu.h"
#include "fake_platform.h"
#include "program_builder.h"
#include "vela_builder.h"

namespace build {

class Loaded {
 public:
  explicit Loaded(const Vela& vela, std::vector<hil::CompileSpec> with = {})
      : specs(std::move(with)), bytes_(vela.bytes()), file_(copy_program()) {
    fake::reset_npu();
    fake::take_log();
    error = program_.load({file_.data(), file_.size()});
    if (error == hil::Error::Ok) error = init();
  }
  ~Loaded() { hil::ethosu::backend().destroy(handle); }

  hil::Error init() {
    hil::DelegateSetup setup{
        program_, {bytes_.data(), bytes_.size()}, {specs.data(), specs.size()}, memory};
    return hil::ethosu::backend().init(setup, &handle);
  }

  hil::Tensor& add(hil::ScalarType type, size_t count, uint8_t first = 0) {
    auto value = std::make_unique<hil::Value>();
    value->tag = hil::Tag::Tensor;
    value->tensor = hil::Tensor();
    value->tensor.type = type;
    value->tensor.numel = count;
    value->tensor.nbytes = count * hil::element_size(type);
    storage_.push_back(std::make_unique<Aligned>(Bytes(value->tensor.nbytes)));
    value->tensor.data = const_cast<uint8_t*>(storage_.back()->data());
    for (size_t i = 0; i < value->tensor.nbytes; ++i) {
      value->tensor.data[i] = static_cast<uint8_t>(first + i);
    }
    values_.push_back(std::move(value));
    return values_.back()->tensor;
  }

  hil::Error execute() {
    std::vector<hil::Value*> args;
    for (const auto& value : values_) args.push_back(value.get());
    temp = hil::Arena({temp_memory_ + 1, sizeof(temp_memory_) - 1});  // askew on purpose
    return hil::ethosu::backend().execute(handle, {args.data(), args.size()}, temp);
  }

  hil::Value& value(size_t index) { return *values_[index]; }

  std::vector<hil::CompileSpec> specs;

 private:
  alignas(16) uint8_t method_memory_[2048];
  alignas(16) uint8_t temp_memory_[256];
  Aligned bytes_, file_;
  hil::Program program_;
  std::vector<std::unique_ptr<hil::Value>> values_;
  std::vector<std::unique_ptr<Aligned>> storage_;

 public:
  hil::Arena memory{hil::Span<uint8_t>(method_memory_, sizeof(method_memory_))};
  hil::Arena temp;
  void* handle = nullptr;
  hil::Error error = hil::Error::Ok;
};

inline Bytes data(const hil::Tensor& tensor) {
  return Bytes(tensor.data, tensor.data + tensor.nbytes);
}

}  // namespace build
