// What a delegate is given, and how a backend becomes known to the runner.
#pragma once

#include "core/arena.h"
#include "core/error.h"
#include "core/value.h"

namespace hil {

class Program;

struct CompileSpec {
  const char* key = nullptr;
  Span<const uint8_t> value;
};

/// All that a delegate may use while the method is loaded.
struct DelegateSetup {
  const Program& program;  // for named data
  Span<const uint8_t> processed;
  Span<const CompileSpec> compile_specs;
  Arena& memory;  // lives as long as the method
};

class Backend {
 public:
  /// Leaves its own state for this delegate in `*handle`.
  virtual Error init(DelegateSetup& setup, void** handle) = 0;
  /// `temp` is empty again after the call.
  virtual Error execute(void* handle, Span<Value* const> args, Arena& temp) = 0;
  virtual void destroy(void* handle) = 0;

 protected:
  ~Backend() = default;
};

struct BackendEntry {
  const char* id;  // BackendDelegate.id in the program, "EthosUBackend"
  Backend* backend;
};

/// All backends of this build (made by CMake from backends.cpp.in).
Span<const BackendEntry> backend_table();

}  // namespace hil
