// Log lines in the grammar of ExecuTorch's Arm runner:
//   I [executorch:file.cpp:211 main()] message
// (executorch/examples/arm/executor_runner/arm_executor_runner.cpp, mid-2025 and later).
#pragma once

#include <cstdarg>
#include <cstddef>

namespace hil {

enum class LogLevel : char { Debug = 'D', Info = 'I', Error = 'E', Fatal = 'F' };

using LogSink = void (*)(const char* text, size_t length);

/// Where whole lines go; nothing is logged before the port has set it.
void set_log_sink(LogSink sink);

/// Longest line kept, end of line included; the rest of a longer one is dropped.
constexpr size_t kMaxLogLine = 400;

__attribute__((format(printf, 5, 6))) void log(LogLevel level, const char* file, int line,
                                               const char* function, const char* text, ...);
void vlog(LogLevel level, const char* file, int line, const char* function, const char* text,
          va_list arguments);

}  // namespace hil

#define HIL_LOG(level, ...) \
  ::hil::log(::hil::LogLevel::level, __FILE_NAME__, __LINE__, __func__, __VA_ARGS__)
