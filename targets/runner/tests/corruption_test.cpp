// Damaged files: every truncation and many flipped bytes of a program end in an error or in a
// bounded execution, never in a crash. Run under sanitizers this is the loader's safety net;
// the fuzzer looks further. Real exports are used too when HIL_TEST_PROGRAMS names a folder.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "core/bundle.h"
#include "loaded_method.h"

namespace {

constexpr unsigned kSeed = 20240611;

build::Bytes rich_program() {
  build::PlanBuilder plan;
  build::TensorInfo in, out, weight, state;
  in.offset = 0;
  out.offset = 16;
  weight.constant = plan.constant({1, 2, 3, 4});
  state.offset = 32;
  state.constant = plan.initial_state({1, 2, 3, 4});
  plan.inputs = {plan.tensor(in)};
  plan.outputs = {plan.tensor(out)};
  const int32_t constant = plan.tensor(weight);
  const int32_t mutable_state = plan.tensor(state);
  plan.int_list({plan.integer(1), plan.integer(2)});
  plan.optional_tensor_list({constant, -1});
  plan.string("text");
  const int32_t copy = plan.op("test::copy", "out");
  plan.call(copy, {constant, mutable_state});
  plan.jump_false(plan.boolean(true), 2);
  plan.delegate_call(plan.delegate("TestBackend", {1, 2, 3}), {0, mutable_state});
  plan.call(copy, {mutable_state, 1});
  plan.move(0, mutable_state);
  return plan.file();
}

/// True when the damaged file was refused at some point.
bool refused(const build::Bytes& bytes) {
  hil::MethodOptions options;
  options.max_instructions = 100;
  LoadedMethod loaded(bytes, 1 << 16, options);
  if (loaded.error != hil::Error::Ok) return true;
  if (loaded.method.execute() != hil::Error::Ok) return true;
  for (size_t i = 0; i < loaded.method.output_count(); ++i) loaded.output(i);
  return false;
}

}  // namespace

TEST_CASE("the undamaged program runs") { CHECK_FALSE(refused(rich_program())); }

TEST_CASE("every truncation is refused") {
  const build::Bytes whole = rich_program();
  for (size_t size = 0; size < whole.size(); ++size) {
    CHECK_MESSAGE(refused(build::Bytes(whole.begin(), whole.begin() + static_cast<long>(size))),
                  "truncated to " << size);
  }
}

TEST_CASE("flipped bytes never crash") {
  MESSAGE("seed " << kSeed);
  std::mt19937 random(kSeed);
  const build::Bytes whole = rich_program();
  size_t refusals = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int round = 0; round < 4; ++round) {
      build::Bytes damaged = whole;
      damaged[at] = static_cast<uint8_t>(damaged[at] ^ (1 + random() % 255));
      refusals += refused(damaged) ? 1 : 0;
    }
  }
  CHECK(refusals > whole.size());
}

TEST_CASE("flipped bytes of a bundle never crash") {
  std::mt19937 random(kSeed);
  const build::BundledTensor tensor = {{4}, {0}, {1, 2, 3, 4}};
  const build::Bytes program = build::copy_program();
  const build::Bytes whole = build::bundle(program, {{{tensor}, {tensor}}});
  LoadedMethod loaded(program);
  for (size_t at = 0; at < whole.size(); ++at) {
    build::Bytes damaged = whole;
    damaged[at] = static_cast<uint8_t>(damaged[at] ^ (1 + random() % 255));
    const build::Aligned aligned(damaged);
    hil::Bundle bundle;
    if (bundle.load({aligned.data(), aligned.size()}) != hil::Error::Ok) continue;
    bool equal = false;
    // Any answer is right as long as there is one.
    static_cast<void>(bundle.set_inputs("forward", 0, loaded.method));
    static_cast<void>(bundle.compare_outputs("forward", 0, loaded.method, 0.01, 0.01, &equal));
    hil::Program inner;
    static_cast<void>(inner.load(bundle.program()));
  }
}

TEST_CASE("real programs, damaged") {
  const char* folder = std::getenv("HIL_TEST_PROGRAMS");
  if (folder == nullptr) {
    MESSAGE("HIL_TEST_PROGRAMS is not set: real programs are not tried");
    return;
  }
  std::mt19937 random(kSeed);
  size_t programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".pte") continue;
    ++programs;
    std::ifstream file(entry.path(), std::ios::binary);
    const build::Bytes whole((std::istreambuf_iterator<char>(file)), {});
    for (int round = 0; round < 300; ++round) {
      const size_t size = random() % whole.size();
      CHECK(refused(build::Bytes(whole.begin(), whole.begin() + static_cast<long>(size))));
      build::Bytes damaged = whole;
      const size_t at = random() % std::min<size_t>(whole.size(), 40000);
      damaged[at] = static_cast<uint8_t>(damaged[at] ^ (1 + random() % 255));
      refused(damaged);
    }
  }
  CHECK(programs > 0);
}
