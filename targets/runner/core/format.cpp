#include "core/format.h"

#include <cstdint>
#include <cstring>

namespace hil {

namespace {

class Writer {
 public:
  Writer(char* out, size_t capacity) : out_(out), capacity_(capacity) {}

  void put(char c) {
    if (length_ + 1 < capacity_) out_[length_++] = c;
  }
  void fill(char c, size_t count) {
    for (size_t i = 0; i < count && length_ + 1 < capacity_; ++i) put(c);
  }
  size_t finish() {
    if (capacity_ > 0) out_[length_] = '\0';
    return length_;
  }

 private:
  char* out_;
  size_t capacity_;
  size_t length_ = 0;
};

struct Spec {
  bool left = false;
  bool zero = false;
  size_t width = 0;
  int precision = -1;
  int length = 0;  // bytes of the integer argument
};

void put_padded(Writer& writer, const Spec& spec, const char* sign, const char* body,
                size_t length) {
  const size_t total = length + std::strlen(sign);
  const size_t padding = spec.width > total ? spec.width - total : 0;
  if (!spec.left && !spec.zero) writer.fill(' ', padding);
  while (*sign != '\0') writer.put(*sign++);
  if (!spec.left && spec.zero) writer.fill('0', padding);
  for (size_t i = 0; i < length; ++i) writer.put(body[i]);
  if (spec.left) writer.fill(' ', padding);
}

/// Digits of `value`, written backwards from `end`; returns the first.
char* digits(char* end, uint64_t value, unsigned base, bool upper) {
  const char* alphabet = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  do {
    *--end = alphabet[value % base];
    value /= base;
  } while (value != 0);
  return end;
}

void put_unsigned(Writer& writer, const Spec& spec, const char* sign, uint64_t value, unsigned base,
                  bool upper) {
  char buffer[24];
  char* const end = buffer + sizeof(buffer);
  char* const first = digits(end, value, base, upper);
  put_padded(writer, spec, sign, first, static_cast<size_t>(end - first));
}

void put_real(Writer& writer, const Spec& spec, double value) {
  const char* sign = value < 0 ? "-" : "";
  const double magnitude = value < 0 ? -value : value;
  if (value != value) return put_padded(writer, spec, "", "nan", 3);
  if (magnitude >= 1e18) return put_padded(writer, spec, sign, "huge", 4);
  const int decimals = spec.precision < 0 || spec.precision > 6 ? 6 : spec.precision;
  uint64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  uint64_t whole = static_cast<uint64_t>(magnitude);
  uint64_t fraction = static_cast<uint64_t>(
      (magnitude - static_cast<double>(whole)) * static_cast<double>(scale) + 0.5);
  if (fraction >= scale) {
    fraction -= scale;
    ++whole;
  }
  char buffer[40];
  char* const end = buffer + sizeof(buffer);
  char* first = end;
  if (decimals > 0) {
    for (int i = 0; i < decimals; ++i, fraction /= 10) {
      *--first = static_cast<char>('0' + fraction % 10);
    }
    *--first = '.';
  }
  first = digits(first, whole, 10, false);
  put_padded(writer, spec, sign, first, static_cast<size_t>(end - first));
}

int64_t signed_argument(const Spec& spec, va_list* arguments) {
  if (spec.length == 8) return va_arg(*arguments, long long);
  const int value = va_arg(*arguments, int);
  if (spec.length == 1) return static_cast<signed char>(value);
  if (spec.length == 2) return static_cast<short>(value);
  return value;
}

uint64_t unsigned_argument(const Spec& spec, va_list* arguments) {
  if (spec.length == 8) return va_arg(*arguments, unsigned long long);
  const unsigned value = va_arg(*arguments, unsigned);
  if (spec.length == 1) return static_cast<unsigned char>(value);
  if (spec.length == 2) return static_cast<unsigned short>(value);
  return value;
}

const char* parse_number(const char* text, va_list* arguments, int* value) {
  if (*text == '*') {
    *value = va_arg(*arguments, int);
    return text + 1;
  }
  int number = 0;
  while (*text >= '0' && *text <= '9' && number < 1000) number = number * 10 + (*text++ - '0');
  *value = number;
  return text;
}

const char* parse_spec(const char* text, va_list* arguments, Spec* spec) {
  for (; *text == '-' || *text == '0' || *text == '+' || *text == ' ' || *text == '#'; ++text) {
    spec->left |= *text == '-';
    spec->zero |= *text == '0';
  }
  int width = 0;
  text = parse_number(text, arguments, &width);
  spec->left |= width < 0;
  spec->width = static_cast<size_t>(width < 0 ? -width : width);
  if (*text == '.') text = parse_number(text + 1, arguments, &spec->precision);
  spec->length = sizeof(int);
  for (;; ++text) {
    if (*text == 'h') {
      spec->length = spec->length == 2 ? 1 : 2;
    } else if (*text == 'l') {
      spec->length = text[1] == 'l' ? 8 : static_cast<int>(sizeof(long));
      if (text[1] == 'l') ++text;
    } else if (*text == 'z' || *text == 't') {
      spec->length = static_cast<int>(sizeof(size_t));
    } else if (*text == 'j') {
      spec->length = 8;
    } else {
      return text;
    }
  }
}

void put_conversion(Writer& writer, Spec spec, char conversion, va_list* arguments) {
  switch (conversion) {
    case 'd':
    case 'i': {
      const int64_t value = signed_argument(spec, arguments);
      const uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value)
                                           : static_cast<uint64_t>(value);
      return put_unsigned(writer, spec, value < 0 ? "-" : "", magnitude, 10, false);
    }
    case 'u':
      return put_unsigned(writer, spec, "", unsigned_argument(spec, arguments), 10, false);
    case 'x':
    case 'X':
      return put_unsigned(writer, spec, "", unsigned_argument(spec, arguments), 16,
                          conversion == 'X');
    case 'p':
      return put_unsigned(writer, spec, "0x",
                          reinterpret_cast<uintptr_t>(va_arg(*arguments, void*)), 16, false);
    case 'f':
    case 'g':
    case 'e':
      return put_real(writer, spec, va_arg(*arguments, double));
    case 'c': {
      const char c = static_cast<char>(va_arg(*arguments, int));
      return put_padded(writer, spec, "", &c, 1);
    }
    case 's': {
      const char* string = va_arg(*arguments, const char*);
      if (string == nullptr) string = "(null)";
      size_t length = 0;
      while ((spec.precision < 0 || length < static_cast<size_t>(spec.precision)) &&
             string[length] != '\0') {
        ++length;
      }
      spec.zero = false;
      return put_padded(writer, spec, "", string, length);
    }
    default:
      writer.put('%');
      if (conversion != '%' && conversion != '\0') writer.put(conversion);
  }
}

}  // namespace

size_t format(char* out, size_t capacity, const char* text, va_list arguments) {
  Writer writer(out, capacity);
  va_list copy;
  va_copy(copy, arguments);
  while (*text != '\0') {
    if (*text != '%') {
      writer.put(*text++);
      continue;
    }
    Spec spec;
    text = parse_spec(text + 1, &copy, &spec);
    put_conversion(writer, spec, *text, &copy);
    if (*text != '\0') ++text;
  }
  va_end(copy);
  return writer.finish();
}

size_t format_to(char* out, size_t capacity, const char* text, ...) {
  va_list arguments;
  va_start(arguments, text);
  const size_t length = format(out, capacity, text, arguments);
  va_end(arguments);
  return length;
}

}  // namespace hil
