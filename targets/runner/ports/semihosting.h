// Semihosting: the console, the files and the exit of a program on a simulator or under a debugger
// ("Semihosting for AArch32 and AArch64", Arm, 2.0). Each port that has it defines all of it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hil::semihosting {

/// Modes of SYS_OPEN, numbered like the fopen() modes in the specification's table.
enum class Mode : uint32_t { ReadBinary = 1, Write = 4, WriteBinary = 5 };

/// A file handle, or -1.
int open(const char* path, Mode mode);
bool close(int file);
/// The length of a file, or -1.
int length(int file);
/// True when every byte was transferred.
bool read(int file, uint8_t* out, size_t count);
bool write(int file, const uint8_t* bytes, size_t count);
/// The command line, terminated; false when there is none or it does not fit.
bool command_line(char* out, size_t capacity);
[[noreturn]] void exit(int status);

}  // namespace hil::semihosting
