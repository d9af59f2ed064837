// The rules of Arm's driver, as the driver in the program itself has them: the kernel's own are
// tested with the same words in the guest.
#include "ethosu/linux/user_driver.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <cstring>

#include "fake_npu.h"
#include "fake_platform.h"
#include "world.h"

namespace {

struct Files {
  Files() {
    fake::reset_npu();
    fake::take_log();
    device = driver().open("/dev/ethosu0");
  }
  static hil::ethosu::linux_driver::UserDriver& driver() { return fake::world().driver; }

  int buffers(const std::vector<uint64_t>& sizes, std::vector<int32_t>* fds) {
    fds->assign(sizes.size(), -1);
    hil_ethosu_create_buffers job = {};
    job.sizes = reinterpret_cast<uintptr_t>(sizes.data());
    job.fds = reinterpret_cast<uintptr_t>(fds->data());
    job.count = static_cast<uint32_t>(sizes.size());
    return driver().ioctl(device, HIL_ETHOSU_CREATE_BUFFERS, &job);
  }
  int network(const build::Bytes& bytes) {
    const build::Aligned copy(bytes);
    hil_ethosu_create_network job = {reinterpret_cast<uintptr_t>(copy.data()), copy.size()};
    return driver().ioctl(device, HIL_ETHOSU_CREATE_NETWORK, &job);
  }
  int inference(int network, const std::vector<int32_t>& in, const std::vector<int32_t>& out,
                int intermediate = 0, int constant = -1) {
    hil_ethosu_create_inference job = {};
    job.ifm_fds = reinterpret_cast<uintptr_t>(in.data());
    job.ofm_fds = reinterpret_cast<uintptr_t>(out.data());
    job.ifm_count = static_cast<uint32_t>(in.size());
    job.ofm_count = static_cast<uint32_t>(out.size());
    job.intermediate_fd = intermediate;
    job.constant_fd = constant;
    return driver().ioctl(network, HIL_ETHOSU_CREATE_INFERENCE, &job);
  }
  uint32_t state(int inference) {
    hil_ethosu_inference_status status = {};
    CHECK(driver().ioctl(inference, HIL_ETHOSU_INFERENCE_STATUS, &status) == 0);
    return status.state;
  }
  int device = -1;
};

#define CHECK_FAILS(expression, number) \
  do {                                  \
    errno = 0;                          \
    CHECK((expression) == -1);          \
    CHECK(errno == (number));           \
  } while (false)

}  // namespace

TEST_CASE("buffers of one call are one batch, each rounded up to 16") {
  Files files;
  std::vector<int32_t> fds;
  REQUIRE(files.buffers({5, 16, 17}, &fds) == 0);
  CHECK(fake::world().npu.taken.size() == 1);
  const uint64_t offsets[] = {0, 16, 32}, sizes[] = {5, 16, 17};
  for (size_t i = 0; i < 3; ++i) {
    hil_ethosu_buffer_info info = {};
    REQUIRE(files.driver().ioctl(fds[i], HIL_ETHOSU_BUFFER_INFO, &info) == 0);
    CHECK(info.offset == offsets[i]);
    CHECK(info.size == sizes[i]);
  }
  for (int32_t file : fds) files.driver().close(file);
  CHECK(fake::world().npu.taken.empty());
}

TEST_CASE("calls that make no buffer") {
  Files files;
  std::vector<int32_t> fds;
  CHECK_FAILS(files.buffers({}, &fds), EINVAL);
  CHECK_FAILS(files.buffers({0}, &fds), EINVAL);
  CHECK_FAILS(files.buffers({16, 0}, &fds), EINVAL);
  CHECK(fake::contains(fake::take_log(), "refused: a buffer of size 0"));
  CHECK_FAILS(files.buffers(std::vector<uint64_t>(257, 1), &fds), EINVAL);
  fake::world().npu.has_memory = false;
  CHECK_FAILS(files.buffers({16}, &fds), ENOMEM);
  CHECK(files.driver().open_files() == 1);
}

TEST_CASE("a buffer ends where it ends") {
  Files files;
  std::vector<int32_t> fds;
  REQUIRE(files.buffers({5, 16}, &fds) == 0);
  const char bytes[] = "abcdefgh";
  char back[16] = {};
  auto& driver = files.driver();
  CHECK(driver.pwrite(fds[0], bytes, 8, 0) == 5);
  CHECK_FAILS(driver.pwrite(fds[0], bytes, 1, 5), ENOSPC);
  CHECK(driver.pread(fds[0], back, 16, 1) == 4);
  CHECK(std::memcmp(back, "bcde", 4) == 0);
  CHECK(driver.pread(fds[0], back, 16, 5) == 0);
  CHECK(driver.pread(fds[1], back, 16, 0) == 16);
  CHECK(back[0] == 0);
  CHECK_FAILS(driver.pread(files.device, back, 1, 0), EBADF);
  CHECK_FAILS(driver.pwrite(99, back, 1, 0), EBADF);
}

TEST_CASE("networks that are refused") {
  struct {
    build::Container container;
    const char* reason;
  } const cases[] = {
      {{0x20000117}, "NPU config mismatch. npu.macs_per_cc=8, optimizer.macs_per_cc=7"},
      {{build::kU85_256, 0x30000000}, "NPU arch mismatch"},
      {{build::kU85_256, build::kU85Id, 3}, "network refused: features"},
      {{build::kU85_256, build::kU85Id, 2, 4097}, "network refused: a cache beyond the SRAM"},
  };
  for (const auto& each : cases) {
    Files files;
    CHECK_FAILS(files.network(build::cop2(each.container)), EINVAL);
    const std::string log = fake::take_log();
    CHECK_MESSAGE(fake::contains(log, each.reason), each.reason, " missing in ", log);
  }
  Files files;
  CHECK_FAILS(files.network(build::payload({1})), EINVAL);
  CHECK(fake::contains(fake::take_log(), "this is COP1"));
  CHECK(files.network(build::cop2()) > 0);
  CHECK(fake::world().npu.taken.size() == 1);
}

TEST_CASE("regions go from the first buffer to the last, and what is absent is empty") {
  Files files;
  std::vector<int32_t> in, out, constant;
  REQUIRE(files.buffers({5, 16, 17}, &in) == 0);
  REQUIRE(files.buffers({9}, &out) == 0);
  REQUIRE(files.buffers({33}, &constant) == 0);
  const int network = files.network(build::cop2());
  REQUIRE(files.inference(network, in, out, 0, constant[0]) > 0);
  CHECK(fake::world().npu.region_sizes[0] == std::vector<size_t>{33, 0, 0, 49, 9});
  REQUIRE(files.inference(network, {in[1]}, {}, constant[0], -1) > 0);
}

TEST_CASE("a stream with a cache has the SRAM") {
  Files files;
  std::vector<int32_t> in;
  REQUIRE(files.buffers({16}, &in) == 0);
  const int network = files.network(build::cop2({build::kU85_256, build::kU85Id, 2, 100}));
  REQUIRE(files.inference(network, in, {}) > 0);
  CHECK(fake::world().npu.region_sizes[0] == std::vector<size_t>{0, 0, 4096, 16, 0});
}

TEST_CASE("inferences that are refused") {
  Files files;
  std::vector<int32_t> in, other;
  REQUIRE(files.buffers({16, 16}, &in) == 0);
  REQUIRE(files.buffers({16}, &other) == 0);
  const int network = files.network(build::cop2());
  CHECK_FAILS(files.inference(network, {in[1], in[0]}, {}), EINVAL);
  CHECK(fake::contains(fake::take_log(), "buffers in no ascending order"));
  CHECK_FAILS(files.inference(network, {in[0], in[0]}, {}), EINVAL);
  CHECK_FAILS(files.inference(network, {in[0], other[0]}, {}), EINVAL);
  CHECK(fake::contains(fake::take_log(), "buffers of several batches"));
  CHECK_FAILS(files.inference(network, {network}, {}), EINVAL);
  CHECK_FAILS(files.inference(network, in, {}, 77), EINVAL);
  CHECK(fake::contains(fake::take_log(), "a descriptor of no buffer"));
  CHECK_FAILS(files.inference(network, {}, {}), EBADF);
  CHECK_FAILS(files.inference(files.device, in, {}), ENOTTY);
  CHECK_FAILS(files.inference(99, in, {}), EBADF);
  CHECK(fake::world().npu.commands.empty());
}

TEST_CASE("an inference that is cancelled has no other end, and the next one waits for the NPU") {
  Files files;
  auto& npu = fake::world().npu;
  std::vector<int32_t> in;
  REQUIRE(files.buffers({16}, &in) == 0);
  const int network = files.network(build::cop2());
  npu.stuck = true;
  const int first = files.inference(network, in, {}), second = files.inference(network, in, {});
  CHECK(files.driver().poll(first, 1) == 0);
  CHECK(files.state(first) == HIL_ETHOSU_RUNNING);
  REQUIRE(files.driver().ioctl(first, HIL_ETHOSU_INFERENCE_CANCEL, nullptr) == 0);
  CHECK(files.driver().poll(first, 1) == 1);
  CHECK(files.state(first) == HIL_ETHOSU_ABORTED);
  CHECK(npu.commands.size() == 1);
  npu.stuck = false;
  CHECK(files.driver().poll(second, -1) == 1);
  CHECK(files.state(first) == HIL_ETHOSU_ABORTED);
  CHECK(files.state(second) == HIL_ETHOSU_OK);
  CHECK(npu.commands.size() == 2);
  REQUIRE(files.driver().ioctl(second, HIL_ETHOSU_INFERENCE_CANCEL, nullptr) == 0);
  CHECK(files.state(second) == HIL_ETHOSU_OK);
}

TEST_CASE("an NPU that stopped says how") {
  Files files;
  auto& npu = fake::world().npu;
  std::vector<int32_t> in;
  REQUIRE(files.buffers({16}, &in) == 0);
  npu.ending = {HIL_ETHOSU_ERROR, 6, 12, "beyond region 1"};
  const int inference = files.inference(files.network(build::cop2()), in, {});
  REQUIRE(files.driver().poll(inference, -1) == 1);
  hil_ethosu_inference_status status = {};
  REQUIRE(files.driver().ioctl(inference, HIL_ETHOSU_INFERENCE_STATUS, &status) == 0);
  CHECK(status.state == HIL_ETHOSU_ERROR);
  CHECK(status.npu_status == 6);
  CHECK(status.qread == 12);
  CHECK(std::strcmp(status.message, "beyond region 1") == 0);
  CHECK(fake::contains(fake::take_log(), "inference stopped: beyond region 1"));
}

TEST_CASE("calls that nobody makes") {
  Files files;
  CHECK_FAILS(files.driver().open("/dev/null"), ENOENT);
  CHECK_FAILS(files.driver().ioctl(files.device, 0, nullptr), ENOTTY);
  CHECK_FAILS(files.driver().poll(files.device, 0), EBADF);
  CHECK_FAILS(files.driver().ioctl(files.device, HIL_ETHOSU_INFERENCE_CANCEL, nullptr), ENOTTY);
  CHECK(files.driver().close(files.device) == 0);
  CHECK_FAILS(files.driver().close(files.device), EBADF);
  hil_ethosu_capabilities found = {};
  CHECK_FAILS(files.driver().ioctl(files.device, HIL_ETHOSU_CAPABILITIES, &found), EBADF);
}
