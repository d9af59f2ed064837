// What the stand-in's tests run: one small program, its behaviour chosen by -D.
// UART: CMSDK APB UART (Arm AN547: UART0 0x59303000, UART1 0x59304000, Secure).

typedef unsigned int u32;

void reset(void);
__attribute__((section(".vectors"), used)) void* const vectors[2] = {(void*)0x30040000, reset};

#ifndef TEXT
#define TEXT "hello"
#endif
#ifndef STATUS
#define STATUS 0
#endif
#ifndef UART
#define UART 0x59303000
#endif

#ifdef ATTRIBUTE
__asm__(".eabi_attribute " ATTRIBUTE);
#endif

static int semihosting(u32 operation, const void* block) {
  register u32 r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = block;
  __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return (int)r0;
}

static void uart(const char* text) {
  volatile u32* const registers = (volatile u32*)UART;
  registers[4] = 16;  // BAUDDIV
  registers[2] = 1;   // CTRL: transmit
  for (; *text; ++text) {
    while (registers[1] & 1) {
    }
    registers[0] = (u32)(unsigned char)*text;
  }
}

static void leave(void) {
  const u32 block[2] = {0x20026, STATUS};
  semihosting(0x20, block);  // SYS_EXIT_EXTENDED
}

#if defined(EXITS)
__attribute__((noinline, noreturn)) void _exit(int status) {
  (void)status;
  for (;;) {
  }
}
#endif

void reset(void) {
#ifdef INSTRUCTION
  __asm__ volatile(".inst.w " INSTRUCTION);
#endif
#if defined(SAY_COMMAND_LINE)
  static char line[1024];
  const u32 block[2] = {(u32)line, sizeof line};
  semihosting(0x15, block);  // SYS_GET_CMDLINE
  semihosting(0x04, "[");
  semihosting(0x04, line);  // SYS_WRITE0
  semihosting(0x04, "]");
#elif defined(SAY_MEMORY)
  static char word[9];
  for (int i = 0; i < 8; ++i) word[i] = ((const char*)SAY_MEMORY)[i];
  semihosting(0x04, word);
#elif defined(OPEN)
  const u32 block[3] = {(u32)OPEN, MODE, sizeof(OPEN) - 1};  // modes: 0 is "r", 4 is "w"
  semihosting(0x04, semihosting(0x01, block) == -1 ? "refused" : "opened");
#elif defined(ADD)  // out.bin: in.bin with ADD added to each of its four bytes
  static unsigned char bytes[4];
  const u32 in[3] = {(u32) "in.bin", 1, 6}, out[3] = {(u32) "out.bin", 5, 7};
  const u32 read[3] = {(u32)semihosting(0x01, in), (u32)bytes, sizeof bytes};
  semihosting(0x06, read);  // SYS_READ
  for (int i = 0; i < 4; ++i) bytes[i] += ADD;
  const u32 write[3] = {(u32)semihosting(0x01, out), (u32)bytes, sizeof bytes};
  semihosting(0x05, write);  // SYS_WRITE
#if defined(ALSO)
  semihosting(0x04, ALSO);
#endif
#elif defined(SERVES)  // an inference for each line that is typed
  static char byte[1];
  const u32 in[3] = {(u32) ":tt", 0, 3};
  const u32 read[3] = {(u32)semihosting(0x01, in), (u32)byte, 1};
  while (semihosting(0x06, read) == 0)
    if (byte[0] == '\n') semihosting(0x04, "SERVER_INFERENCE_DONE\n");
#elif defined(LOCK_UP)
  *(volatile u32*)0xF0000000 = 1;
#else
  uart(TEXT);
#endif
#if defined(TICKS)
  __asm__ volatile("cpsid i");            // it has no handler
  *(volatile u32*)0xE000E014 = 0xFFFFFF;  // SYST_RVR
  *(volatile u32*)0xE000E010 = 7;         // SYST_CSR: enable, interrupt, processor clock
#endif
#if defined(EXITS)
  _exit(0);
#elif defined(LOOP)
  for (;;) {
  }
#endif
  leave();
}
