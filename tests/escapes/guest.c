/* A hostile guest for QEMU's mps3-an547: it does what the lines of its first input say, one attempt
 * a line ("ID OPERATION ARGUMENT ARGUMENT"), and says what came of each. Test-only. */
#include <stddef.h>
#include <stdint.h>

#define TEXT ((char*)0x61000000)    /* the lines */
#define BUFFER ((char*)0x62000000)  /* 1 MiB of the letter x, without an end of line */
#define STREAM ((char*)0x60100000)  /* a command stream for the NPU */
#define MAILBOX ((volatile uint32_t*)0x60000100)
enum { MIB = 1 << 20, OPEN = 1, CLOSE = 2, WRITE0 = 4, WRITE = 5, READ = 6, SEEK = 10, FLEN = 12,
       REMOVE = 14, RENAME = 15, SYSTEM = 18, COMMAND_LINE = 21, EXIT = 32 };

static uint32_t call(uint32_t operation, const void* block) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = block;
  __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

static uint32_t length(const char* text) {
  uint32_t n = 0;
  while (text[n] != '\0') ++n;
  return n;
}

static int same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

static uint32_t number(const char* text) {
  uint32_t value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) value = value * 10 + (uint32_t)(*text - '0');
  return value;
}

static void say(const char* text) { call(WRITE0, text); }

static void say_number(uint32_t value) {
  char text[11];
  int at = 10;
  text[at] = '\0';
  do text[--at] = (char)('0' + value % 10), value /= 10;
  while (value != 0);
  say(text + at);
}

static int opened(const char* name, uint32_t mode) {
  const uint32_t block[3] = {(uint32_t)name, mode, length(name)};
  return (int)call(OPEN, block);
}

static void closed(int file) {
  const uint32_t block[1] = {(uint32_t)file};
  call(CLOSE, block);
}

/* How many bytes were not written, or not read. */
static uint32_t moved(uint32_t operation, int file, const void* data, uint32_t size) {
  const uint32_t block[3] = {(uint32_t)file, (uint32_t)data, size};
  return call(operation, block);
}

static void clean(char* text, uint32_t size) {
  for (uint32_t i = 0; i < size; ++i)
    if (text[i] < ' ' || text[i] > '~') text[i] = '.';
  text[size] = '\0';
}

static void reads(const char* name) {
  char text[49];
  const int file = opened(name, 0);
  if (file < 0) {
    say("refused");
    return;
  }
  const uint32_t size = 48 - moved(READ, file, text, 48);
  closed(file);
  clean(text, size > 48 ? 0 : size);
  say(size == 0 ? "nothing" : "read ");
  say(text);
}

static void writes(const char* name, uint32_t mode) {
  const int file = opened(name, mode);
  if (file < 0) {
    say("refused");
    return;
  }
  const uint32_t left = moved(WRITE, file, "escaped\n", 8);
  closed(file);
  say(left == 0 ? "written" : "nothing");
}

static int named(const char* base, uint32_t value) {
  char name[32];
  uint32_t at = length(base), digits = 1;
  for (uint32_t i = 0; i < at; ++i) name[i] = base[i];
  for (uint32_t rest = value; rest >= 10; rest /= 10) ++digits;
  name[at + digits] = '\0';
  for (uint32_t i = digits; i > 0; --i, value /= 10) name[at + i - 1] = (char)('0' + value % 10);
  return opened(name, same(base, "/proc/self/fd/") ? 5 : 4);
}

/* Every descriptor of the simulator, opened again and cut to nothing. */
static void descriptors(void) {
  uint32_t got = 0;
  for (uint32_t i = 3; i < 64; ++i) {
    const int file = named("/proc/self/fd/", i);
    if (file < 0) continue;
    ++got;
    closed(file);
  }
  say_number(got);
  say(" opened");
}

static int filled(const char* name, uint32_t mebibytes, int removed) {
  const int file = opened(name, 5);
  if (removed) call(REMOVE, (const uint32_t[2]){(uint32_t)name, length(name)});
  for (uint32_t i = 0; file >= 0 && i < mebibytes; ++i)
    if (moved(WRITE, file, BUFFER, MIB) != 0) break;
  say("filled");
  return file;
}

static void sparse(const char* name, uint32_t mebibytes) {
  const int file = opened(name, 5);
  const uint32_t place[2] = {(uint32_t)file, mebibytes * (uint32_t)MIB - 1};
  call(SEEK, place);
  say(moved(WRITE, file, "x", 1) == 0 ? "written" : "nothing");
  closed(file);
}

static void rings(uint32_t count) {
  static uint32_t ring[4] = {0x474E4952, 0, 0x60000100, 0};
  const int file = opened("npu-request", 5);
  uint32_t sent = 0;
  for (; file >= 0 && sent < count; ++sent, ++ring[1])
    if (moved(WRITE, file, ring, sizeof(ring)) != 0) break;
  say(file < 0 ? "refused" : "rung");
}

/* A job of the NPU: its command stream from a file, all of its regions 16 MiB of DDR. */
static void job(const char* name) {
  const int file = opened(name, 1);
  const uint32_t block[1] = {(uint32_t)file};
  const uint32_t size = call(FLEN, block);
  moved(READ, file, STREAM, size);
  closed(file);
  for (int i = 0; i < 96; ++i) MAILBOX[i] = 0;
  MAILBOX[0] = 0x55504E48, MAILBOX[1] = 1, MAILBOX[2] = 2;
  MAILBOX[8] = (uint32_t)STREAM, MAILBOX[10] = size, MAILBOX[12] = 3;
  for (int i = 0; i < 3; ++i) MAILBOX[14 + 4 * i] = 0x64000000, MAILBOX[16 + 4 * i] = 16 * MIB;
  const int answer = opened("npu-answer", 1);
  rings(1);
  uint32_t word;
  moved(READ, answer, &word, 4);
  say(" result ");
  say_number(MAILBOX[3]);
}

static void truncates_memory(void) {
  writes("npu-ddr", 5);
  call(REMOVE, (const uint32_t[2]){(uint32_t) "npu-ddr", 7});
  say(" ");
  rings(1);
}

static void attempt(const char* what, char* a, char* b) {
  const uint32_t two[4] = {(uint32_t)a, length(a), (uint32_t)b, length(b)};
  if (same(what, "read")) reads(a);
  else if (same(what, "write")) writes(a, 3);
  else if (same(what, "open")) say(opened(a, 3) < 0 ? "refused" : "opened");
  else if (same(what, "create")) writes(a, 5);
  else if (same(what, "append")) writes(a, 9);
  else if (same(what, "remove")) say(call(REMOVE, two) == 0 ? "removed" : "refused");
  else if (same(what, "rename")) say(call(RENAME, two) == 0 ? "renamed" : "refused");
  else if (same(what, "system")) say(call(SYSTEM, two) == 0 ? "run" : "refused");
  else if (same(what, "descriptors")) descriptors();
  else if (same(what, "fill")) closed(filled(a, number(b), 0));
  else if (same(what, "fill-removed")) (void)filled(a, number(b), 1);
  else if (same(what, "sparse")) sparse(a, number(b));
  else if (same(what, "rings")) rings(number(a));
  else if (same(what, "job")) job(a);
  else if (same(what, "memory")) truncates_memory();
  else if (same(what, "garbage")) {
    const int file = opened("npu-request", 5);
    moved(WRITE, file, BUFFER, 4096);
    say("written");
  } else if (same(what, "files")) {
    for (uint32_t i = 0, most = number(a); i < most; ++i) {
      const int file = named("f", i);
      if (file >= 0) closed(file);
    }
    say("made");
  } else if (same(what, "handles")) {
    uint32_t count = 0;
    while (count < 100000 && opened(a, 0) >= 0) ++count;
    say(count < 100000 ? "ran out" : "never ran out");
  } else if (same(what, "huge")) {
    const int file = opened(a, 7);
    say(moved(same(b, "write") ? WRITE : READ, file, (void*)0x60000000, 0xF0000000) == 0
            ? "moved" : "refused");
  } else if (same(what, "shout")) {
    for (;;) say(BUFFER);
  } else if (same(what, "shout-lines")) {
    for (;;) say("x\n");
  } else if (same(what, "spin")) {
    for (;;) __asm__ volatile("nop");
  } else if (same(what, "sleep")) {
    for (;;) __asm__ volatile("wfi");
  } else if (same(what, "wild")) {
    call(WRITE0, (void*)0xF0000000);
    call(OPEN, (void*)0xFFFFFFF0);
    call(COMMAND_LINE, (void*)0x10);
    say("went on");
  } else if (same(what, "operation")) {
    call(number(a), BUFFER);
  } else if (same(what, "status")) {
    const uint32_t block[2] = {0x20026, number(a)};
    call(EXIT, block);
  } else {
    say("unknown");
  }
}

static char* cut(char** line, char end) {
  char* word = *line;
  while (**line != '\0' && **line != end) ++*line;
  if (**line == end) *(*line)++ = '\0';
  return word;
}

__attribute__((used, noreturn)) void run(void) {
  for (uint32_t i = 0; i < MIB; ++i) BUFFER[i] = 'x';
  BUFFER[MIB] = '\0';
  const int file = opened("s0i0.bin", 1);
  const uint32_t size = MIB - moved(READ, file, TEXT, MIB);
  closed(file);
  TEXT[size] = '\0';
  char* rest = TEXT;
  while (*rest != '\0') {
    char* line = cut(&rest, '\n');
    const char* id = cut(&line, ' ');
    const char* what = cut(&line, ' ');
    char* a = cut(&line, same(what, "system") ? '\n' : ' ');
    say("attempt ");
    say(id);
    say(": ");
    attempt(what, a, line);
    say("\n");
  }
  say("I [executorch:guest.c:1 main()] Program complete, exiting.\n");
  const uint32_t block[2] = {0x20026, 0};
  call(EXIT, block);
  for (;;) {
  }
}

__attribute__((naked, used)) void reset(void) {
  __asm__ volatile("ldr r0, =0xE000ED88\n ldr r1, [r0]\n orr r1, r1, #0xF00000\n str r1, [r0]\n"
                   "dsb\n isb\n b run");
}

static void fault(void) {
  const uint32_t block[2] = {0x20026, 77};
  say("fault\n");
  call(EXIT, block);
}

__attribute__((section(".vectors"), used)) static const uint32_t vectors[16] = {
    0x30010000, (uint32_t)&reset, (uint32_t)&fault, (uint32_t)&fault,
    (uint32_t)&fault, (uint32_t)&fault, (uint32_t)&fault};
