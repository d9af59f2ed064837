// A program that behaves as ExecuTorch's sample for Zephyr: it fills its inputs with ones, goes on
// after a failed load, and says what it does. Method has the two functions at which tensors are set
// and read from outside, with ExecuTorch's names and layouts; the engine in runtime does the work.
#include <cstdint>
#include <cstring>
#include <new>
#include <sys/types.h>

extern "C" {
#include <zephyr/arch/common/semihost.h>
}

#include "core/backend.h"
#include "core/log.h"
#include "core/method.h"
#include "model_pte.h"

extern "C" {
void _exit(int status);
void __cxa_pure_virtual() { __builtin_trap(); }
}
void operator delete(void*) noexcept {}
void operator delete(void*, size_t) noexcept {}

namespace hil {

Span<const BackendEntry> backend_table() { return {}; }

}  // namespace hil

namespace executorch::runtime {

struct TensorImpl {
  const int32_t* sizes;
  const uint8_t* dim_order;
  const int32_t* strides;
  void* data;
  size_t dim;
  ssize_t numel;
  size_t numel_bound;
  int8_t type;
};

struct EValue {
  union {
    TensorImpl* tensor;
    int64_t number;
  };
  uint32_t tag;  // 1 is a tensor
};

class Method {
 public:
  int set_input(const EValue& value, size_t index);
  int get_outputs(EValue* values, size_t count);
  hil::Method engine;
};

__attribute__((noinline)) int Method::set_input(const EValue& value, size_t index) {
  const size_t size = engine.input(index).tensor.nbytes;
  return static_cast<int>(
      engine.set_input(index, {static_cast<const uint8_t*>(value.tensor->data), size}));
}

static TensorImpl impls[8];

static EValue seen(const hil::Tensor& tensor, TensorImpl& impl) {
  impl = {tensor.sizes, tensor.dim_order, nullptr, tensor.data, tensor.rank,
          static_cast<ssize_t>(tensor.nbytes / hil::element_size(tensor.type)), 0,
          static_cast<int8_t>(tensor.type)};
  return {{&impl}, 1};
}

__attribute__((noinline)) int Method::get_outputs(EValue* values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] = seen(engine.output(i).tensor, impls[i]);
  return 0;
}

}  // namespace executorch::runtime

namespace {

alignas(16) uint8_t method_pool[METHOD_POOL_BYTES];
alignas(16) uint8_t temp_pool[2000];
alignas(16) uint8_t input[4096];
alignas(executorch::runtime::Method) uint8_t method_storage[sizeof(executorch::runtime::Method)];
uint8_t model[sizeof(model_pte)] __attribute__((aligned(16)));

long console;

void emit(const char* text, size_t length) {
  semihost_write(console, text, static_cast<long>(length));
}

}  // namespace

int main() {
  using executorch::runtime::EValue;
  using executorch::runtime::TensorImpl;
  console = semihost_open(":tt", SEMIHOST_OPEN_W);
  hil::set_log_sink(emit);
  std::memcpy(model, model_pte, sizeof(model));
  hil::Program program;
  (void)program.load({model, sizeof(model)});
  hil::Arena memory({method_pool, sizeof(method_pool)});
  hil::Arena temp({temp_pool, sizeof(temp_pool)});
  auto& method = *new (method_storage) executorch::runtime::Method;  // never destroyed
  hil::MethodOptions options;
  options.kernels = hil::kernel_table();
  if (const hil::Error error = method.engine.init(program, "forward", memory, temp, options);
      error != hil::Error::Ok) {
    HIL_LOG(Info, "Loading of method forward failed with status 0x%x", static_cast<unsigned>(error));
    _exit(-1);  // ExecuTorch's goes on, to its abort
  }
  std::memset(input, 1, sizeof(input));
  for (size_t i = 0; i < method.engine.input_count(); ++i) {
    hil::Tensor tensor = method.engine.input(i).tensor;
    tensor.data = input;
    TensorImpl impl;
    if (method.set_input(executorch::runtime::seen(tensor, impl), i) != 0) _exit(2);
  }
  if (method.engine.execute() != hil::Error::Ok) _exit(3);
  HIL_LOG(Info, "Model executed successfully.");
  EValue outputs[8];
  if (method.get_outputs(outputs, method.engine.output_count()) != 0) _exit(4);
  HIL_LOG(Info, "Model outputs:");
  HIL_LOG(Info, "SUCCESS: Program complete, exiting.");
  return 0;
}
