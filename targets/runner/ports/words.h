// A command line that comes as one string.
#pragma once

#include "arguments.h"
#include "runner.h"

namespace hil {

/// Splits `line` at blanks, in place, and runs with its words; the exit status.
inline int run_words(char* line) {
  constexpr size_t kMaxWords = 2 * (Arguments::kMaxInputs + Arguments::kMaxSets) + 4;
  static const char* words[kMaxWords];
  size_t count = 0;
  for (char* at = line; *at != '\0' && count < kMaxWords;) {
    while (*at == ' ') *at++ = '\0';
    if (*at == '\0') break;
    words[count++] = at;
    while (*at != ' ' && *at != '\0') ++at;
  }
  return run(static_cast<int>(count), words);
}

}  // namespace hil
