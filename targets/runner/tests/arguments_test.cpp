// The command line of ExecuTorch's runner, in any order of -i and -o, and our input sets.
#include "arguments.h"

#include <doctest/doctest.h>

#include <vector>

#include "fake_platform.h"

namespace {

bool parse(std::vector<const char*> words, hil::Arguments* out) {
  words.insert(words.begin(), "executor_runner");
  fake::reset();
  fake::take_log();
  return hil::parse_arguments(static_cast<int>(words.size()), words.data(), out);
}

}  // namespace

TEST_CASE("-o before or after -i names the same set") {
  for (const std::vector<const char*>& line :
       {std::vector<const char*>{"-m", "p", "-i", "a", "-i", "b", "-o", "out"},
        std::vector<const char*>{"-m", "p", "-o", "out", "-i", "a", "-i", "b"},
        std::vector<const char*>{"-i", "a", "-o", "out", "-i", "b", "-m", "p"}}) {
    hil::Arguments arguments;
    REQUIRE(parse(line, &arguments));
    REQUIRE(arguments.set_count == 1);
    CHECK(arguments.sets[0].input_count == 2);
    CHECK(std::string(arguments.sets[0].output_base) == "out");
    CHECK(std::string(arguments.inputs[1]) == "b");
    CHECK(std::string(arguments.model) == "p");
  }
}

TEST_CASE("every further -o starts a set") {
  hil::Arguments arguments;
  REQUIRE(parse({"-m", "p", "-o", "a", "-i", "a0", "-o", "b", "-i", "b0", "-i", "b1"}, &arguments));
  REQUIRE(arguments.set_count == 2);
  CHECK(arguments.sets[0].input_count == 1);
  CHECK(arguments.sets[1].first_input == 1);
  CHECK(arguments.sets[1].input_count == 2);
  CHECK(std::string(arguments.sets[1].output_base) == "b");
  CHECK_FALSE(arguments.profile);
}

TEST_CASE("-p asks for a profile") {
  hil::Arguments arguments;
  REQUIRE(parse({"-p", "-m", "p"}, &arguments));
  CHECK(arguments.profile);
  CHECK(arguments.set_count == 0);
}

TEST_CASE("nonsense is refused with its reason") {
  hil::Arguments arguments;
  CHECK_FALSE(parse({"-m", "p", "-x"}, &arguments));
  CHECK(fake::contains(fake::take_log(), "unknown option '-x'"));
  CHECK_FALSE(parse({"-m"}, &arguments));
  CHECK(fake::contains(fake::take_log(), "option -m needs a value"));
  hil::Arguments none;
  CHECK_FALSE(parse({"-i", "a"}, &none));
  CHECK(fake::contains(fake::take_log(), "no program given"));
}

TEST_CASE("more inputs or sets than there is room for are refused") {
  std::vector<const char*> many_inputs = {"-m", "p"}, many_sets = {"-m", "p"};
  for (size_t i = 0; i <= hil::Arguments::kMaxInputs; ++i) {
    many_inputs.insert(many_inputs.end(), {"-i", "a"});
    many_sets.insert(many_sets.end(), {"-o", "a"});
  }
  hil::Arguments inputs, sets;
  CHECK_FALSE(parse(many_inputs, &inputs));
  CHECK(fake::contains(fake::take_log(), "more than 128 inputs"));
  CHECK_FALSE(parse(many_sets, &sets));
  CHECK(fake::contains(fake::take_log(), "more than 64 input sets"));
}
