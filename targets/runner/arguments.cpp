#include "arguments.h"

#include <cstring>

#include "core/log.h"

namespace hil {

namespace {

bool add_input(const char* path, Arguments* out) {
  if (out->input_count == Arguments::kMaxInputs) {
    HIL_LOG(Error, "more than %zu inputs", Arguments::kMaxInputs);
    return false;
  }
  if (out->set_count == 0) out->set_count = 1;
  out->inputs[out->input_count++] = path;
  ++out->sets[out->set_count - 1].input_count;
  return true;
}

bool add_output(const char* base, Arguments* out) {
  const bool names_first_set = out->set_count <= 1 && out->sets[0].output_base == nullptr;
  if (!names_first_set && out->set_count == Arguments::kMaxSets) {
    HIL_LOG(Error, "more than %zu input sets", Arguments::kMaxSets);
    return false;
  }
  if (names_first_set) {
    out->set_count = 1;
  } else {
    out->sets[out->set_count++].first_input = out->input_count;
  }
  out->sets[out->set_count - 1].output_base = base;
  return true;
}

}  // namespace

bool parse_arguments(int argc, const char* const* argv, Arguments* out) {
  for (int i = 1; i < argc; ++i) {
    const char* option = argv[i];
    if (std::strcmp(option, "-p") == 0) {
      out->profile = true;
      continue;
    }
    const bool known = std::strcmp(option, "-m") == 0 || std::strcmp(option, "-i") == 0 ||
                       std::strcmp(option, "-o") == 0;
    if (!known) {
      HIL_LOG(Error, "unknown option '%s'; usage: -m MODEL [-i INPUT]... [-o OUTPUT_BASE]... [-p]",
              option);
      return false;
    }
    if (i + 1 == argc) {
      HIL_LOG(Error, "option %s needs a value", option);
      return false;
    }
    const char* value = argv[++i];
    if (option[1] == 'm') {
      out->model = value;
    } else if (!(option[1] == 'i' ? add_input(value, out) : add_output(value, out))) {
      return false;
    }
  }
  if (out->model == nullptr) {
    HIL_LOG(Error, "no program given; usage: -m MODEL [-i INPUT]... [-o OUTPUT_BASE]... [-p]");
    return false;
  }
  return true;
}

}  // namespace hil
