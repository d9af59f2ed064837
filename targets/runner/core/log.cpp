#include "core/log.h"

#include "core/format.h"

namespace hil {

namespace {
LogSink log_sink = nullptr;
}

void set_log_sink(LogSink sink) { log_sink = sink; }

void vlog(LogLevel level, const char* file, int line, const char* function, const char* text,
          va_list arguments) {
  if (log_sink == nullptr) return;
  char buffer[kMaxLogLine];
  size_t length = format_to(buffer, sizeof(buffer) - 1, "%c [executorch:%s:%d %s()] ",
                            static_cast<char>(level), file, line, function);
  length += format(buffer + length, sizeof(buffer) - 1 - length, text, arguments);
  buffer[length++] = '\n';
  log_sink(buffer, length);
}

void log(LogLevel level, const char* file, int line, const char* function, const char* text, ...) {
  va_list arguments;
  va_start(arguments, text);
  vlog(level, file, line, function, text, arguments);
  va_end(arguments);
}

}  // namespace hil
