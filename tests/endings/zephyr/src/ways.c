#include "ways.h"

#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>
#include <zephyr/sys/printk.h>
#include <zephyr/sys/reboot.h>

LOG_MODULE_REGISTER(ways);

static volatile int one = 1;

static int deeper(volatile int* from) {
  volatile int here[64];
  here[0] = *from + one;
  return deeper(here) + here[0];
}

void overflow_the_stack(void) { printk("%d\n", deeper(&one)); }

void fail_an_assertion(void) { __ASSERT(one == 2, "one is %d", one); }

void write_to_code(void) {
  volatile int* code = (int*)((uintptr_t)&write_to_code & ~(uintptr_t)3);
  *code = one;
}

void run_nonsense(void) { __asm__ volatile("udf #0"); }

void panic(void) { k_panic(); }

void oops(void) { k_oops(); }

/* Lines of the log thread, which has the higher priority, among printk's. */
void interleave(void) {
  for (int i = 0; i < 8; ++i) {
    LOG_INF("a message of the log thread, number %d", i);
    printk("a line of printk, number %d\n", i);
    k_msleep(i % 3);
  }
  k_msleep(50);
  printk("I [executorch:runner.cpp:269 run()] Program complete, exiting.\n");
}

static void say(const char* text) {
  for (; *text; ++text) {
    printk("%c", *text);
    k_yield();
  }
}

/* The runner's last line, character by character, with the log thread's in its middle. */
void cut_the_end(void) {
  say("I [executorch:runner.cpp:269 run()] Program comp");
  LOG_INF("another thread's message");
  k_msleep(50);
  say("lete, exiting.\n");
}

K_MUTEX_DEFINE(first);
K_MUTEX_DEFINE(second);

static void lock_both(struct k_mutex* one, struct k_mutex* other) {
  k_mutex_lock(one, K_FOREVER);
  k_msleep(10);
  k_mutex_lock(other, K_FOREVER);
}

static void work(void* a, void* b, void* c) { lock_both(&second, &first); }
K_THREAD_DEFINE(worker, 1024, work, NULL, NULL, NULL, 5, 0, K_TICKS_FOREVER);

/* Each thread has the mutex that the other waits for. */
void deadlock(void) {
  k_thread_start(worker);
  lock_both(&first, &second);
}

void spin(void) {
  while (one == 1) {
  }
}

void reset(void) { sys_reboot(SYS_REBOOT_COLD); }
