#include "fake_platform.h"

#include <cstring>

#include "core/log.h"

namespace fake {

namespace {

alignas(32) uint8_t method_pool[1 << 20];
alignas(32) uint8_t temp_pool[1 << 12];
alignas(32) uint8_t file_pool[1 << 20];
Machine current;
BackendCalls calls;
uint64_t now = 0;

void append_log(const char* text, size_t length) { current.log.append(text, length); }

uint64_t tick() { return now += 7; }

hil::Error copy(hil::KernelContext& context, hil::Args args) {
  const hil::Tensor& from = context.tensor(args, 0);
  const hil::Tensor& to = context.tensor(args, 1);
  if (!context.ok()) return context.argument_error();
  if (from.nbytes != to.nbytes) return context.fail(hil::Error::InvalidArgument, "sizes differ");
  std::memcpy(to.data, from.data, to.nbytes);
  return hil::Error::Ok;
}

hil::Error increment(hil::KernelContext& context, hil::Args args) {
  const hil::Tensor& t = context.tensor(args, 0);
  if (!context.ok()) return context.argument_error();
  for (size_t i = 0; i < t.nbytes; ++i) ++t.data[i];
  return hil::Error::Ok;
}

hil::Error view(hil::KernelContext& context, hil::Args args) {
  context.tensor(args, args.size() - 1).data = context.tensor(args, 0).data;
  return hil::Error::Ok;
}

const hil::KernelEntry entries[] = {{"test::copy.out", copy},
                                    {"test::increment", increment},
                                    {"executorch_prim::et_view.default", view}};

bool has_bytes(const hil::Value& value) {
  return value.tag == hil::Tag::Tensor && value.tensor.data != nullptr && value.tensor.nbytes > 0;
}

class TestBackend final : public hil::Backend {
 public:
  hil::Error init(hil::DelegateSetup& setup, void** handle) override {
    ++calls.initialised;
    calls.processed.assign(setup.processed.begin(), setup.processed.end());
    if (!setup.compile_specs.empty()) calls.first_key = setup.compile_specs[0].key;
    *handle = setup.memory.allocate(8);
    return *handle != nullptr ? hil::Error::Ok : hil::Error::MemoryAllocationFailed;
  }
  hil::Error execute(void*, hil::Span<hil::Value* const> args, hil::Arena& temp) override {
    ++calls.executed;
    temp.allocate(100);
    if (args.size() < 2 || !has_bytes(*args[0]) || !has_bytes(*args[1])) {
      return hil::Error::InvalidArgument;
    }
    args[1]->tensor.data[0] = static_cast<uint8_t>(args[0]->tensor.data[0] + 100);
    return hil::Error::Ok;
  }
  void destroy(void*) override { ++calls.destroyed; }
};

TestBackend backend;
const hil::BackendEntry backends[] = {{"TestBackend", &backend}};

}  // namespace

Machine& machine() { return current; }

void reset() {
  current = Machine();
  calls = BackendCalls();
  now = 0;
}

std::string take_log() {
  hil::set_log_sink(append_log);
  std::string log;
  log.swap(current.log);
  return log;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

hil::Span<const hil::KernelEntry> kernels() { return {entries, 3}; }
BackendCalls& backend_calls() { return calls; }

}  // namespace fake

namespace hil {

Span<const KernelEntry> kernel_table() { return fake::kernels(); }
Span<const BackendEntry> backend_table() { return {fake::backends, 1}; }

namespace platform {

Pools pools() {
  return {{fake::method_pool, fake::current.method_pool},
          {fake::temp_pool, sizeof(fake::temp_pool)},
          {fake::file_pool, fake::current.file_pool}};
}

void write_log(const char* text, size_t length) { fake::append_log(text, length); }

Error read_file(const char* path, Arena& pool, Span<const uint8_t>* out, uint64_t* size) {
  const auto found = fake::current.files.find(path);
  if (found == fake::current.files.end()) return Error::NotFound;
  *size = found->second.size();
  auto* memory = static_cast<uint8_t*>(pool.allocate(*size, 32));
  if (memory == nullptr) return Error::MemoryAllocationFailed;
  std::memcpy(memory, found->second.data(), found->second.size());
  *out = {memory, found->second.size()};
  return Error::Ok;
}

bool write_file(const char* path, Span<const uint8_t> bytes) {
  if (fake::current.unwritable.count(path) > 0) return false;
  fake::current.files[path].assign(bytes.begin(), bytes.end());
  return true;
}

Clock clock() { return fake::current.has_clock ? fake::tick : nullptr; }

StackUse stack_use() { return {100, 1000}; }

uint64_t peak_resident() { return 4096; }

Span<const uint8_t> build_id() {
  static const uint8_t id[] = {0xde, 0xad, 0x01};
  return {id, sizeof(id)};
}

}  // namespace platform

}  // namespace hil
