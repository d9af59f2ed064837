// A program with an NPU's driver in it, for the stand-in's tests; its behaviour is chosen by -D.
//
// The driver's functions have the names and arguments of ethos-u-core-driver's public header
// (include/ethosu_driver.h) and wait for an NPU that QEMU does not have: whoever gets into one of
// them stays there. The command stream copies SIZE bytes within scratch (region 1).
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

void reset(void);
__attribute__((section(".vectors"), used)) void* const vectors[2] = {(void*)0x30040000, reset};

#ifndef PLACE
#define PLACE 0x31000000  // of scratch
#endif
#ifndef CONFIG
#define CONFIG 0x1807  // what Vela compiles for a U55 with 128 MACs
#endif
#ifndef ID
#define ID 0x10066001
#endif
#ifndef TO
#define TO 32
#endif
#ifndef FAST_BYTES
#define FAST_BYTES 64
#endif
#ifndef FIRST
#define FIRST 0x31504F43  // COP1
#endif
#ifndef CUT
#define CUT 0  // bytes missing at the payload's end
#endif
#ifndef SIZES
#define SIZES sizes
#endif
#define SCRATCH_BYTES 64

static int semihosting(u32 operation, const void* block) {
  register u32 r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = block;
  __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return (int)r0;
}

void* memset(void* to, int value, u32 count) {  // the compiler calls it
  for (u32 i = 0; i < count; ++i) ((u8*)to)[i] = (u8)value;
  return to;
}

static void say(const char* text) { semihosting(0x04, text); }

static void say_number(const char* name, int number) {
  char digits[12] = {0};
  int at = 11;
  u32 left = number < 0 ? -(u32)number : (u32)number;
  do {
    digits[--at] = (char)('0' + left % 10);
  } while (left /= 10);
  if (number < 0) digits[--at] = '-';
  say(name);
  say(digits + at);
  say("\n");
}

static void leave(void) {
  const u32 block[2] = {0x20026, 0};
  semihosting(0x20, block);
}

__attribute__((aligned(16))) static const u32 payload[] = {
    FIRST,
#ifndef WITHOUT_CONFIG
    1, CONFIG, ID,
#else
    5, 5, 5,
#endif
    5, 5, 5, 0x000D0002,  // three NOPs, a stream of 13 words
    0x00010130, 0x00010131, 0x4030, 0, 0x4031, TO, 0x4032, 16, 0x0010, 0x00000011,
    0xFFFF0000, 0xFFFF0000, 0xFFFF0000};

static void fill(u8* scratch) {
  for (u32 i = 0; i < SCRATCH_BYTES; ++i) scratch[i] = (u8)i;
}

static void check(const u8* scratch) {
  u32 same = 0;
  for (u32 i = 0; i < 16; ++i) same += scratch[TO + i] == i;
  say_number("copied ", (int)same);
}

#ifdef MESSAGES  // two of the real driver's, which are in an ELF with or without symbols
__attribute__((used)) static const char messages[] =
    "E: Failed to create global driver semaphore\0E: Inference job not running...";
#endif

#ifdef DOORBELL

struct Mailbox {
  u32 magic, version, command, result, config, id, status, qread;
  u64 commands, commands_bytes;
  u32 count, reserved;
  u64 regions[8][2];
  u64 cycles;
  char message[192];
};

void reset(void) {
  struct Mailbox* const box = (struct Mailbox*)0x70000000;
  u32* const stream = (u32*)0x70001000;
  u8* const scratch = (u8*)0x70002000;
  for (u32 i = 0; i < 13; ++i) stream[i] = payload[8 + i];
  fill(scratch);
  const u32 answer_name[3] = {(u32)"npu-answer", 1, 10};
  const u32 request_name[3] = {(u32)"npu-request", 5, 11};
  const u32 answer = (u32)semihosting(0x01, answer_name);
  const u32 request = (u32)semihosting(0x01, request_name);
  for (u32 command = 1; command <= 2; ++command) {
    *box = (struct Mailbox){0x55504E48, 1, command, 2};
    box->commands = (u32)stream;
    box->commands_bytes = 13 * 4;
    box->count = 2;
    box->regions[1][0] = (u32)scratch;
    box->regions[1][1] = SCRATCH_BYTES;
    u32 ring[4] = {0x474E4952, command, (u32)box, 0};
    const u32 out[3] = {request, (u32)ring, 16};
    semihosting(0x05, out);
    u32 sequence = 0;
    const u32 in[3] = {answer, (u32)&sequence, 4};
    semihosting(0x06, in);
    say_number("answered ", (int)sequence);
    say_number("result ", (int)box->result);
  }
  say_number("config ", (int)box->config);
  check(scratch);
#ifdef LOOP
  for (;;) {
  }
#endif
  leave();
}

#else

static void wait_for_npu(void) {
  while (*(volatile u32*)0x58102000 == 0) {
  }
}

struct ethosu_driver {
  u32 any[16];
} driver;

#define OF_DRIVER __attribute__((noipa))
OF_DRIVER int ethosu_init(struct ethosu_driver* drv, void* const base, const void* fast,
                          const u32 fast_size, u32 secure, u32 privileged) {
  (void)drv, (void)base, (void)fast, (void)fast_size, (void)secure, (void)privileged;
  wait_for_npu();
  return 77;
}
OF_DRIVER void ethosu_deinit(struct ethosu_driver* drv) { (void)drv, wait_for_npu(); }
OF_DRIVER int ethosu_soft_reset(struct ethosu_driver* drv) { return (void)drv, wait_for_npu(), 77; }
OF_DRIVER struct ethosu_driver* ethosu_reserve_driver(void) { return wait_for_npu(), (void*)77; }
OF_DRIVER void ethosu_release_driver(struct ethosu_driver* drv) { (void)drv, wait_for_npu(); }
OF_DRIVER int ethosu_invoke_async(struct ethosu_driver* drv, const void* data, const int size,
                                  u64* const bases, const u32* sizes, const int count,
                                  void* user) {
  (void)drv, (void)data, (void)size, (void)bases, (void)sizes, (void)count, (void)user;
  wait_for_npu();
  return 77;
}
OF_DRIVER int ethosu_wait(struct ethosu_driver* drv, _Bool block) {
  return (void)drv, (void)block, wait_for_npu(), 77;
}
OF_DRIVER int ethosu_invoke_v3(struct ethosu_driver* drv, const void* data, const int size,
                               u64* const bases, const u32* sizes, const int count, void* user) {
  return ethosu_invoke_async(drv, data, size, bases, sizes, count, user);
}
OF_DRIVER u64 ETHOSU_PMU_Get_CCNTR(struct ethosu_driver* drv) {
  return (void)drv, wait_for_npu(), 77;
}

// The application's, called by the driver; they use the stack and call the driver themselves.
static int begun, ended, wrong;
void ethosu_inference_begin(struct ethosu_driver* drv, void* user) {
  const u8* const scratch = (const u8*)PLACE;
  wrong += drv != &driver || user != &begun || ETHOSU_PMU_Get_CCNTR(drv) != 0;
  wrong += begun == 0 && scratch[TO] != TO;  // the NPU has not worked yet
  ++begun;
}
void ethosu_inference_end(struct ethosu_driver* drv, void* user) {
  const u8* const scratch = (const u8*)PLACE;
  wrong += drv != &driver || user != &begun || ETHOSU_PMU_Get_CCNTR(drv) != 0;
  wrong += scratch[TO] != 0;  // it has
  ++ended;
}

static void say_hooks(void) {
  say_number("begun ", begun);
  say_number("ended ", ended);
}

void reset(void) {
  u8* const scratch = (u8*)PLACE;
  u8* const fast = (u8*)0x31010000;
  u64 bases[3] = {0, PLACE, 0};
  const u32 sizes[3] = {0, SCRATCH_BYTES, 64};
  fill(scratch);
#ifndef WITHOUT_INIT
  say_number("init ", ethosu_init(&driver, (void*)0x58102000, fast, FAST_BYTES, 1, 1));
#endif
#ifdef ENDLESS
  for (;;) {
  }
#endif
  struct ethosu_driver* const reserved = ethosu_reserve_driver();
  say_number("reserved ", reserved == &driver);
  for (u32 i = 0; i < 2; ++i) {  // the second one finds a driver that is free again
#ifdef ASYNC
    say_number("started ", ethosu_invoke_async(reserved, payload, sizeof payload - CUT, bases,
                                               sizes, 3, &begun));
    say_number("again ", ethosu_invoke_async(reserved, payload, sizeof payload, bases, sizes, 3,
                                             &begun));
    say_hooks();
    say_number("wait ", ethosu_wait(reserved, 1));
    say_number("wait ", ethosu_wait(reserved, 1));
#else
    const int result =
        ethosu_invoke_v3(reserved, payload, sizeof payload - CUT, bases, SIZES, 3, &begun);
    say_number("result ", result);
#endif
  }
  say_number("fast ", bases[2] == (u32)fast);
  say_hooks();
  say_number("wrong ", wrong);
#ifdef RELEASE_A_RUNNING_JOB
  ethosu_invoke_async(reserved, payload, sizeof payload, bases, sizes, 3, &begun);
  ethosu_release_driver(reserved);
  say_hooks();
  say_number("wait ", ethosu_wait(reserved, 1));
#endif
  say_number("cycles ", ETHOSU_PMU_Get_CCNTR(reserved) == 0);
  ethosu_release_driver(reserved);
  check(scratch);
  ethosu_deinit(reserved);
  leave();
}

#endif
