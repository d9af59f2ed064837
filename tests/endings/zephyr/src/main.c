#include <string.h>
#include <zephyr/arch/common/semihost.h>
#include <zephyr/init.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include "ways.h"

static const struct {
  const char* name;
  void (*go)(void);
} kWays[] = {
    {"overflow", overflow_the_stack},
    {"assert", fail_an_assertion},
    {"mpu", write_to_code},
    {"usage", run_nonsense},
    {"panic", panic},
    {"oops", oops},
    {"interleave", interleave},
    {"cut", cut_the_end},
    {"deadlock", deadlock},
    {"spin", spin},
    {"reset", reset},
};

/* Before Zephyr's banner. */
static int speak_early(void) {
  printk("I [executorch:early.cpp:1 early()] before the banner\n");
  return 0;
}
SYS_INIT(speak_early, POST_KERNEL, 99);

/* Which one: the tests write it into the ELF. */
volatile const char way[16] = "none";

static void go(void) {
  for (size_t i = 0; i < ARRAY_SIZE(kWays); ++i) {
    if (strcmp((const char*)way, kWays[i].name) == 0) kWays[i].go();
  }
}

static void leave(int status) {
  long block[] = {0x20026, status};                         /* ADP_Stopped_ApplicationExit */
  for (;;) semihost_exec((enum semihost_instr)0x20, block); /* SYS_EXIT_EXTENDED */
}

int main(void) {
  go();
  leave(0);
  return 0;
}
