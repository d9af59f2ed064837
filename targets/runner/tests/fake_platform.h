// A machine in memory: files, log and clock that a test can look at and break.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/kernel.h"
#include "ports/platform.h"

namespace fake {

using Bytes = std::vector<uint8_t>;

struct Machine {
  std::map<std::string, Bytes> files;
  std::set<std::string> unwritable;
  std::string log;
  size_t method_pool = 64 * 1024;
  size_t file_pool = 64 * 1024;
  bool has_clock = true;
};

/// The machine in use, fresh after reset().
Machine& machine();
void reset();
/// The log since the last call; installs the log sink.
std::string take_log();

bool contains(const std::string& text, const std::string& part);

/// Copies kernel entries and the "TestBackend" that the tests are linked with.
hil::Span<const hil::KernelEntry> kernels();
struct BackendCalls {
  int initialised = 0, executed = 0, destroyed = 0;
  Bytes processed;
  std::string first_key;
};
BackendCalls& backend_calls();

}  // namespace fake
