// A small vsnprintf: newlib-nano's has no %z and no 64-bit integers, and drags in malloc.
#pragma once

#include <cstdarg>
#include <cstddef>

namespace hil {

/// Understands %% %c %s %d %i %u %x %X %p %f %g with '-', '0', width, precision and the
/// length modifiers hh h l ll z j t. %f and %g print six decimals at most. The result is
/// always terminated; text that does not fit is cut. Returns the length of what was kept.
size_t format(char* out, size_t capacity, const char* text, va_list arguments);

/// The same with its arguments in the call.
__attribute__((format(printf, 3, 4))) size_t format_to(char* out, size_t capacity, const char* text,
                                                       ...);

}  // namespace hil
