#include "world.h"

#include "fake_npu.h"

namespace fake {

namespace {

std::unique_ptr<World>& current() {
  static std::unique_ptr<World> one = std::make_unique<World>();
  return one;
}

}  // namespace

World& world() { return *current(); }
void reset_npu() { current() = std::make_unique<World>(); }

bool LinuxNpu::identify(uint32_t* now_config, uint32_t* now_id) {
  *now_config = config;
  *now_id = id;
  return answers;
}

uint8_t* LinuxNpu::take(size_t bytes) {
  if (!has_memory) return nullptr;
  auto memory = std::make_unique<uint8_t[]>(bytes);
  uint8_t* begin = memory.get();
  taken[begin] = std::move(memory);
  return begin;
}

void LinuxNpu::give_back(uint8_t* memory) { taken.erase(memory); }

void LinuxNpu::start(hil::Span<const uint8_t> stream, Regions regions) {
  commands.emplace_back(stream.begin(), stream.end());
  region_sizes.emplace_back();
  for (const auto& region : regions) region_sizes.back().push_back(region.size());
  if (work) work(regions);
}

bool LinuxNpu::ended(int64_t, Ending* out) {
  *out = ending;
  return !stuck;
}

}  // namespace fake

namespace EthosU {

System& system() { return fake::world().system; }

}  // namespace EthosU
