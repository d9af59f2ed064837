// What a board sends over a serial line, and the program image that it runs.
#include <cstring>
#include <string>
#include <vector>

#include "core/crc32.h"
#include "doctest/doctest.h"
#include "ports/program_image.h"
#include "ports/serial_frames.h"

namespace {

std::string sent;

void put(const char* text, size_t length) { sent.append(text, length); }

hil::Span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

void append_word(std::string* to, size_t value) {
  for (int shift = 0; shift < 32; shift += 8) to->push_back(static_cast<char>(value >> shift));
}

/// An image with the files "a" and "b" and the command line "run -m a".
std::string image_of(const std::string& a, const std::string& b) {
  const std::string line("run -m a", 9);
  const size_t start = 36 + 2 * 32;
  std::string rest = "0123456789abcdef";
  append_word(&rest, start);
  append_word(&rest, 2);
  size_t offset = start + line.size();
  for (const auto& [name, content] : {std::pair("a", a), std::pair("b", b)}) {
    rest += name + std::string(23, '\0');
    append_word(&rest, offset);
    append_word(&rest, content.size());
    offset += content.size();
  }
  rest += line + a + b;
  std::string image = "HILI";
  append_word(&image, 12 + rest.size());
  append_word(&image, hil::crc32(0, bytes_of(rest)));
  return image + rest;
}

}  // namespace

TEST_CASE("a frame has its number, its kind and the checksum of both and its content") {
  sent.clear();
  hil::FrameWriter writer(put);
  writer.send(hil::FrameKind::Log, "Method loaded.", 14);
  writer.send(hil::FrameKind::Exit, "0", 1);
  CHECK(sent == "@0000L Method loaded. 4d8fb8bc\n@0001X 0 093131c5\n");
}

TEST_CASE("content that is too long is cut, and its frame is whole") {
  sent.clear();
  hil::FrameWriter writer(put);
  const std::string content(hil::FrameWriter::kMaxContent + 1, 'x');
  writer.send(hil::FrameKind::Log, content.data(), content.size());
  CHECK(sent.size() == 7 + hil::FrameWriter::kMaxContent + 10);
  CHECK(sent.back() == '\n');
}

TEST_CASE("a file goes out in frames with offset and size; an empty one too") {
  sent.clear();
  hil::FrameWriter writer(put);
  writer.send_file("s0-0.bin", bytes_of(std::string(64, '\x01') + '\x02'));
  writer.send_file("s0-1.bin", {});
  CHECK(sent.find("@0000F s0-0.bin 0 65 0101") == 0);
  CHECK(sent.find("@0001F s0-0.bin 64 65 02 ") != std::string::npos);
  CHECK(sent.find("@0002F s0-1.bin 0 0  ") != std::string::npos);
}

TEST_CASE("files of an image are found where they lie") {
  const std::string image = image_of("alpha", "be") + "flash goes on";
  hil::ProgramImage program;
  REQUIRE(program.open(bytes_of(image)));
  CHECK(std::string(program.run(), 16) == "0123456789abcdef");
  CHECK(std::strcmp(program.command_line(), "run -m a") == 0);
  hil::Span<const uint8_t> file;
  REQUIRE(program.find("b", &file));
  CHECK(std::string(file.begin(), file.end()) == "be");
  CHECK_FALSE(program.find("c", &file));
}

TEST_CASE("a changed byte, a cut image and erased flash are no image") {
  const std::string image = image_of("alpha", "be");
  hil::ProgramImage program;
  for (size_t i = 0; i < image.size(); ++i) {
    std::string changed = image;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    CHECK_FALSE(program.open(bytes_of(changed)));
    CHECK_FALSE(program.open(bytes_of(image.substr(0, i))));
  }
  CHECK_FALSE(program.open(bytes_of(std::string(4096, '\xFF'))));
}
