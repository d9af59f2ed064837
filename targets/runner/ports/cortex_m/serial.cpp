// The host at the other end of a serial line: the program lies in flash, outputs go out in frames.
#include <cstring>

#include "core/format.h"
#include "core/log.h"
#include "host_link.h"
#include "ports/platform.h"
#include "ports/program_image.h"
#include "ports/serial_frames.h"
#include "ports/words.h"
#include "uart.h"

namespace hil {

namespace {

constexpr size_t kMaxCommandLine = 1024;

FrameWriter host(uart_write);
ProgramImage image;

}  // namespace

int run_command_line() {
  static char line[kMaxCommandLine];
  uart_start();
  set_log_sink(platform::write_log);
  const Span<uint8_t> flash = platform::pools().files;
  const bool found = image.open({flash.data(), flash.size()});
  char run[ProgramImage::kRunLength + 1] = "none";
  if (found) std::memcpy(run, image.run(), ProgramImage::kRunLength);
  host.send(FrameKind::Begin, run, std::strlen(run));
  if (!found) {
    HIL_LOG(Error, "there is no program image at 0x%x, or it is damaged: flash it again",
            static_cast<unsigned>(reinterpret_cast<uintptr_t>(flash.data())));
    return 1;
  }
  if (std::strlen(image.command_line()) >= sizeof(line)) {
    HIL_LOG(Error, "a command line longer than %zu bytes", sizeof(line) - 1);
    return 1;
  }
  std::strcpy(line, image.command_line());
  return run_words(line);
}

void end_run(int status) {
  char text[12];
  host.send(FrameKind::Exit, text, format_to(text, sizeof(text), "%d", status));
  for (;;) __asm__ volatile("wfi");
}

namespace platform {

void write_log(const char* text, size_t length) {
  if (length > 0 && text[length - 1] == '\n') --length;
  host.send(FrameKind::Log, text, length);
}

Error read_file(const char* path, Arena&, Span<const uint8_t>* out, uint64_t* size) {
  if (!image.find(path, out)) return Error::NotFound;
  *size = out->size();
  return Error::Ok;
}

bool write_file(const char* path, Span<const uint8_t> bytes) {
  host.send_file(path, bytes);
  return true;
}

}  // namespace platform

}  // namespace hil
