#include "ethosu/linux/options.h"

#include <cstring>

#include "core/log.h"

namespace hil::ethosu::linux_driver {

namespace {

constexpr char kPmuEvent[] = "ethosu.pmu_event";

Error wrong(const CompileSpec& spec, const char* wanted) {
  HIL_LOG(Error, "Ethos-U compile spec %s of %zu bytes is not %s", spec.key, spec.value.size(),
          wanted);
  return Error::InvalidProgram;
}

template <typename T>
bool read(const CompileSpec& spec, T* out) {
  if (spec.value.size() != sizeof(T)) return false;
  std::memcpy(out, spec.value.data(), sizeof(T));
  return true;
}

Error read_device(const CompileSpec& spec, Options* out) {
  size_t length = spec.value.size();
  while (length > 0 && spec.value[length - 1] == 0) --length;
  if (length == 0 || length >= sizeof(out->device) ||
      std::memchr(spec.value.data(), 0, length) != nullptr) {
    return wrong(spec, "the path of a device");
  }
  std::memcpy(out->device, spec.value.data(), length);
  out->device[length] = '\0';
  return Error::Ok;
}

Error read_event(const CompileSpec& spec, Options* out) {
  const char* number = spec.key + std::strlen(kPmuEvent);
  const bool fits = number[0] >= '0' && number[0] < char{'0' + kCounters} && number[1] == '\0';
  if (!fits) return wrong(spec, "one of its counters 0 to 7");
  const bool is_event = read(spec, &out->pmu_events[static_cast<size_t>(number[0] - '0')]);
  return is_event ? Error::Ok : wrong(spec, "a u32");
}

Error read_one(const CompileSpec& spec, Options* out) {
  const auto is = [&](const char* key) { return std::strcmp(spec.key, key) == 0; };
  if (is("ethosu.device")) return read_device(spec, out);
  if (is("ethosu.timeout_ns")) {
    const bool fits = read(spec, &out->timeout_ns) && out->timeout_ns > 0;
    return fits ? Error::Ok : wrong(spec, "an i64 above 0");
  }
  if (is("ethosu.enable_cycle_counter")) {
    uint8_t enabled = 0;
    if (!read(spec, &enabled)) return wrong(spec, "a u8");
    out->cycle_counter = enabled != 0;
    return Error::Ok;
  }
  const bool is_event = std::strncmp(spec.key, kPmuEvent, std::strlen(kPmuEvent)) == 0;
  return is_event ? read_event(spec, out) : Error::Ok;
}

}  // namespace

Error read_options(Span<const CompileSpec> specs, Options* out) {
  for (const CompileSpec& spec : specs) {
    if (spec.key != nullptr) HIL_TRY(read_one(spec, out));
  }
  return Error::Ok;
}

}  // namespace hil::ethosu::linux_driver
