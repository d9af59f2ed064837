#include "ethosu/payload.h"

#include "core/log.h"
#include "ethosu/words.h"

namespace hil::ethosu {

namespace {

constexpr uint32_t kCop1 = 0x31504F43;  // "COP1"
constexpr uint32_t kOptimizerConfig = 1;
constexpr uint32_t kCommandStream = 2;
constexpr uint32_t kNop = 5;

Error cut_off(size_t offset) {
  HIL_LOG(Error, "Custom Operator Payload: the action at byte %zu is cut off", offset);
  return Error::InvalidProgram;
}

}  // namespace

Error read_payload(Span<const uint8_t> bytes, Payload* out) {
  if (bytes.size() % 4 != 0 || bytes.empty()) {
    HIL_LOG(Error, "custom_data_size=0x%x not a multiple of 4",
            static_cast<unsigned>(bytes.size()));
    return Error::InvalidProgram;
  }
  const uint32_t magic = uint32_at(bytes.data());
  if (magic != kCop1) {
    HIL_LOG(Error, "Custom Operator Payload: %u is not correct, expected %x",
            static_cast<unsigned>(magic), static_cast<unsigned>(kCop1));
    return Error::InvalidProgram;
  }
  bool has_commands = false;
  for (size_t at = 4; at < bytes.size();) {
    const uint32_t action = uint32_at(bytes.data() + at);
    const size_t body = at + 4;
    size_t length = 0;
    if ((action & 0xFF) == kOptimizerConfig) {
      length = 8;
      if (bytes.sub(body, length).empty()) return cut_off(at);
      out->has_config = true;
      out->config = uint32_at(bytes.data() + body);
      out->id = uint32_at(bytes.data() + body + 4);
    } else if ((action & 0xFF) == kCommandStream) {
      length = 4 * size_t{(action >> 8 & 0xFF) << 16 | action >> 16};
      if (has_commands) {
        HIL_LOG(Error, "Custom Operator Payload: a second command stream at byte %zu", at);
        return Error::NotSupported;
      }
      if (length > bytes.size() - body) return cut_off(at);
      out->commands = bytes.sub(body, length);
      has_commands = true;
    } else if ((action & 0xFF) != kNop) {
      HIL_LOG(Error, "UNSUPPORTED driver_action_command: %u", static_cast<unsigned>(action & 0xFF));
      return Error::NotSupported;
    }
    at = body + length;
  }
  if (out->commands.empty()) {
    HIL_LOG(Error, "Custom Operator Payload: there is no command stream in it");
    return Error::InvalidProgram;
  }
  return Error::Ok;
}

}  // namespace hil::ethosu
