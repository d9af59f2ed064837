// ExecuTorch's runtime with its own Ethos-U backend for Linux, over our driver library and the
// driver in the program itself:  executorch MODEL.pte BASE INPUT...  writes BASE-0.bin and so on.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include "core/log.h"
#include "ethosu/linux/doorbell_npu.h"

namespace {

using executorch::runtime::EValue;

std::vector<char> bytes_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void say(const char* text, size_t length) { std::fwrite(text, 1, length, stderr); }

}  // namespace

extern "C" {
unsigned char* ethosu_fast_scratch = nullptr;
size_t ethosu_fast_scratch_size = 0;
}

namespace EthosU {

// To the end of the process: the backend closes its device when other things are gone already.
System& system() {
  static auto& npu = *new hil::ethosu::linux_driver::DoorbellNpu();
  static auto& driver = *new hil::ethosu::linux_driver::UserDriver(npu);
  return driver;
}

}  // namespace EthosU

int main(int argc, char** argv) {
  hil::set_log_sink(say);
  executorch::extension::Module module(argv[1]);
  const auto meta = module.method_meta("forward");
  if (!meta.ok()) return 3;
  std::vector<std::vector<char>> memory;
  std::vector<executorch::extension::TensorPtr> tensors;
  std::vector<EValue> inputs;
  for (int i = 3; i < argc; ++i) {
    const auto info = meta->input_tensor_meta(static_cast<size_t>(i - 3));
    if (!info.ok()) return 3;
    const auto sizes = info->sizes();
    memory.push_back(bytes_of(argv[i]));
    tensors.push_back(executorch::extension::make_tensor_ptr(
        {sizes.begin(), sizes.end()}, memory.back().data(), info->scalar_type()));
    inputs.emplace_back(tensors.back());
  }
  const auto outputs = module.forward(inputs);
  if (!outputs.ok()) return 4;
  for (size_t i = 0; i < outputs->size(); ++i) {
    const auto tensor = outputs->at(i).toTensor();
    std::ofstream file(std::string(argv[2]) + "-" + std::to_string(i) + ".bin", std::ios::binary);
    file.write(static_cast<const char*>(tensor.const_data_ptr()),
               static_cast<std::streamsize>(tensor.nbytes()));
  }
  return 0;
}
