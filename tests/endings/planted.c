/* Firmware that ends in one planted way (-DENDING=...), for QEMU's mps3-an547 and semihosting.
 * It speaks as much of a runner's language as the reader needs. With -DONE_SET it takes its command
 * line as ExecuTorch's arm_executor_runner does, one input set per process, prints no build id, and
 * ends in that way only on the second input set. Test-only. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PASSES, NULL_CALL, STACK_OVERFLOW, ENDLESS_LOOP, WFI_FOR_EVER, OPERATOR_MISSING,
       ALLOCATOR_TOO_SMALL, OUTPUT_NOT_WRITABLE, WRONG_BY_ONE, NO_OUTPUT, ABORT_AFTER_PASS,
       LOOKS_OUTSIDE, RUNS_COMMAND, LOCKS_UP, NO_END_MARKER, LEAVES_2, FORGES, SPOILS, LEAVES_256,
       UNDECLARED_OUTPUT, REWRITES_INPUT, REWRITES_PROGRAM, SPEAKS, SPEAKS_LATE, ONE_LINE };

#ifndef WORDS  /* of SPEAKS, which is the guest's first line, and its exit status */
#define WORDS ""
#define STATUS 1
#endif

static uint32_t call(uint32_t operation, const void* block) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = block;
  __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

static void say(const char* text) { call(0x04, text); }  /* SYS_WRITE0 */

static int open_file(const char* name, uint32_t mode) {
  const uint32_t block[3] = {(uint32_t)name, mode, strlen(name)};
  return (int)call(0x01, block);
}

static int write_output(const char* name, float third) {
  const float values[4] = {0.0f, 0.5f, third, 1.5f};
  const int file = open_file(name, 5);
  if (file < 0) return 0;
  const uint32_t block[3] = {(uint32_t)file, (uint32_t)values, sizeof(values)};
  call(0x05, block);
  const uint32_t close[1] = {(uint32_t)file};
  return call(0x02, close) == 0;
}

__attribute__((noreturn)) static void leave(uint32_t status) {
  const uint32_t block[2] = {0x20026, status};
  call(0x20, block);
  for (;;) __asm__ volatile("wfi");
}

static void hex(char* out, uint32_t value) {
  for (int i = 7; i >= 0; --i, value >>= 4) out[i] = "0123456789abcdef"[value & 15];
}

__attribute__((used)) void report(const uint32_t* frame, uint32_t ipsr) {
  static char first[] = "Hard fault. irq=-13, pc=0x00000000, lr=0x00000000, xpsr=0x00000000, "
                        "sp=0x00000000\n";
  static char second[] = "            cfsr=0x00000000 bfar=0x00000000 mmfar=0x00000000\n";
  const uint32_t cfsr = *(volatile uint32_t*)0xE000ED28;
  const int pushed = (cfsr & (1u << 20)) == 0;  /* not after a stack overflow */
  (void)ipsr;
  hex(strstr(first, "pc=0x") + 5, pushed ? frame[6] : 0);
  hex(strstr(first, "lr=0x") + 5, pushed ? frame[5] : 0);
  hex(strstr(first, "xpsr=0x") + 7, pushed ? frame[7] : 0);
  hex(strstr(first, "sp=0x") + 5, (uint32_t)frame);
  hex(strstr(second, "cfsr=0x") + 7, cfsr);
  hex(strstr(second, "bfar=0x") + 7, *(volatile uint32_t*)0xE000ED38);
  hex(strstr(second, "mmfar=0x") + 8, *(volatile uint32_t*)0xE000ED34);
  say(first);
  say(second);
  leave(1);
}

__attribute__((naked)) void fault(void) {
  __asm__ volatile("tst lr, #4\n ite eq\n mrseq r0, msp\n mrsne r0, psp\n mrs r1, ipsr\n b report");
}

__attribute__((noinline)) static uint32_t dive(volatile uint32_t* above, uint32_t depth) {
  volatile uint32_t here[64];
  here[0] = depth + above[0];
  return dive(here, depth + 1) + here[0];
}

__attribute__((noinline)) static void spin(void) {
  for (;;) __asm__ volatile("nop");
}

__attribute__((noinline)) static void wait(void) {
  for (;;) __asm__ volatile("wfi");
}

static void (*volatile nowhere)(void);

static char output[] = "s0-0.bin";

#define SAY(level, text) say(level " [executorch:planted.c:1 main()] " text "\n")

__attribute__((noinline)) static void work(int ending) {
  const uint32_t command[2] = {(uint32_t) "echo pwned > pwned; cat /etc/passwd", 35};
  volatile uint32_t top[1] = {1};
  switch (ending) {
    case NULL_CALL: nowhere(); break;
    case STACK_OVERFLOW: dive(top, 0); break;
    case ENDLESS_LOOP: spin(); break;
    case WFI_FOR_EVER: wait(); break;
    case OPERATOR_MISSING:
      SAY("E", "kernel 'aten::exp.out' not found.");
      SAY("I", "Loading of method forward failed with status 0x14");
      SAY("I", "Method loaded.");
      nowhere();
      break;
    case ALLOCATOR_TOO_SMALL:
      SAY("E", "method allocator too small: 5000 bytes needed, 4096 available; build with a "
               "larger HIL_METHOD_POOL_BYTES");
      leave(1);
    case ABORT_AFTER_PASS:
      SAY("I", "TEST: BundleIO index[0] Test_result: PASS");
      SAY("F", "In function main(), assert failed (status == Error::Ok)");
      leave(1);
    case LOOKS_OUTSIDE:
      if (open_file("/etc/passwd", 0) < 0) SAY("E", "Could not open file /etc/passwd (errno: 2)");
      if (open_file("../../secret", 0) < 0) SAY("E", "Could not open file ../../secret (errno: 2)");
      break;
    case RUNS_COMMAND:
      if (call(0x12, command) != 0) SAY("E", "the host refused to run a command");
      break;
    case LOCKS_UP:
      *(volatile uint32_t*)0xE000ED08 = 0x30000000;  /* VTOR: the vectors are zeros */
      nowhere();
      break;
    case SPEAKS_LATE:
      say(WORDS);
      leave(STATUS);
    case ONE_LINE: {
      static char piece[65536];
      memset(piece, 'x', sizeof(piece) - 1);
      for (;;) say(piece);
    }
    default: break;
  }
}

#ifdef ONE_SET
static int with_text(const char* name) {
  const int file = open_file(name, 0);
  char first = 0;
  const uint32_t block[3] = {(uint32_t)file, (uint32_t)&first, 1};
  return file >= 0 && call(0x06, block) == 0;
}

/* The next word of a command line, which is cut there. */
static char* next(char** line) {
  char* word = *line;
  while (**line != '\0' && **line != ' ') ++*line;
  if (**line == ' ') *(*line)++ = '\0';
  return word;
}

/* What the command line says: how the run is to end. */
static int begin(void) {
  static char text[512];
  const char *model = "", *input = "", *base = "";
  char* line = text;
  int words = 1;
  const uint32_t block[2] = {(uint32_t)text, sizeof(text)};
  call(0x15, block);
  next(&line);
  for (; *line != '\0'; words += 2) {
    const char* option = next(&line);
    const char** value = strcmp(option, "-m") == 0   ? &model
                         : strcmp(option, "-i") == 0 ? &input
                         : strcmp(option, "-o") == 0 ? &base
                                                     : NULL;
    if (value == NULL) SAY("F", "Not right parameters!"), leave(1);
    *value = next(&line);
  }
  if (words < 7) SAY("F", "Not right number of parameters!"), leave(1);
  if (!with_text(model)) SAY("F", "the model cannot be read"), leave(1);
  if (!with_text(input)) SAY("F", "the input cannot be read"), leave(1);
  memcpy(output, base, 2);
  if (ENDING == FORGES) return base[1] == '0' ? FORGES : NO_OUTPUT;
  return base[1] == '0' ? PASSES : ENDING;
}
#endif

__attribute__((noreturn, used)) void run(void) {
  *(volatile uint32_t*)0xE000ED24 |= 7u << 16;  /* MemManage, BusFault and UsageFault on */
#ifdef ONE_SET
  const int ending = begin();
#else
  const int ending = ENDING;
  if (ending == SPEAKS) say(WORDS), leave(STATUS);
  SAY("I", "build id 00112233445566778899");
#endif
  SAY("I", "Method loaded.");
  SAY("I", "Starting the model execution...");
  work(ending);
  if (ending == OUTPUT_NOT_WRITABLE) {
    if (!write_output("absent/s0-0.bin", 1.0f))
      SAY("E", "Could not open output file s0-0.bin (errno: 2)");
  } else if (ending != NO_OUTPUT) {
    const float third = ending == WRONG_BY_ONE ? 1.25f : 1.0f;
    write_output(output, third);
#ifndef ONE_SET
    write_output("s1-0.bin", third);
#endif
  }
  if (ending == FORGES) write_output("s1-0.bin", 1.0f);
  if (ending == SPOILS) write_output("s0-0.bin", 1.25f);
  if (ending == UNDECLARED_OUTPUT) write_output("s0-1.bin", 1.0f);
  if (ending == REWRITES_INPUT) write_output("s1i0.bin", 1.25f);
  if (ending == REWRITES_PROGRAM) write_output("program.pte", 1.0f);
  SAY("I", "method_allocator_used:     1200 / 62914560  free: 62913360 ( used: 0 % )");
  if (ending != NO_END_MARKER) SAY("I", "Program complete, exiting.");
  leave(ending == LEAVES_2 ? 2 : ending == LEAVES_256 ? 256 : 0);
}

__attribute__((naked)) void reset(void) {
  __asm__ volatile("ldr r0, =0xE000ED88\n ldr r1, [r0]\n orr r1, r1, #0xF00000\n str r1, [r0]\n"
                   "ldr r0, =0x30008000\n msr psplim, r0\n ldr r0, =0x30010000\n msr psp, r0\n"
                   "movs r0, #2\n msr control, r0\n isb\n b run");
}

#define FAULT (uint32_t) fault
__attribute__((section(".vectors"), used)) const uint32_t vectors[16] = {
    0x30008000, (uint32_t)reset, FAULT, FAULT, FAULT, FAULT, FAULT, FAULT};
