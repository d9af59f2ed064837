// A .bpte: a program together with test cases (ExecuTorch's bundled program).
#pragma once

#include "core/method.h"

namespace bundled_program_flatbuffer {
struct BundledMethodTestSuite;
struct BundledProgram;
struct Value;
}  // namespace bundled_program_flatbuffer

namespace hil {

/// True when the file's identifier is that of a bundled program, of whatever version.
bool is_bundle(Span<const uint8_t> bytes);

class Bundle {
 public:
  /// Verifies `bytes`, which must outlive the Bundle, and finds the program in them.
  Error load(Span<const uint8_t> bytes);
  Span<const uint8_t> program() const { return program_; }

  size_t case_count(const char* method) const;
  /// Inputs are rearranged when the bundle's dim order is not the method's.
  Error set_inputs(const char* method, size_t index, Method& out) const;
  /// Compares like ExecuTorch: floating point by |a-b| <= atol + rtol*|b|, all else exactly.
  Error compare_outputs(const char* method, size_t index, const Method& actual, double rtol,
                        double atol, bool* equal) const;

 private:
  const bundled_program_flatbuffer::BundledMethodTestSuite* suite(const char* method) const;

  const bundled_program_flatbuffer::BundledProgram* root_ = nullptr;
  Span<const uint8_t> program_;
};

}  // namespace hil
