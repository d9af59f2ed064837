// Ends a Linux guest in every possible way, in the runner's place: as the program that it is given
// says by name, or by being a kernel module.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/log.h"
#include "ports/linux/signals.h"
#include "ports/platform.h"

namespace {

void put(const char* path, const char* text) {
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
  if (file < 0 || write(file, text, strlen(text)) < 0) perror(path);
  close(file);
}

void PANIC() { put("/proc/sysrq-trigger", "c"); }

void OOPS() { syscall(SYS_finit_module, open("program.pte", O_RDONLY), "", 0); }

void OUT_OF_MEMORY() {
  for (;;) memset(malloc(1 << 20), 1, 1 << 20);
}

__attribute__((noinline)) void store(volatile int* where) { *where = 1; }

void UNTOLD_SEGFAULT() { store(reinterpret_cast<volatile int*>(16)); }

void SEGFAULT() {
  hil::tell_of_signals();
  store(reinterpret_cast<volatile int*>(16));
}

// request_key(2) waits, not to be disturbed, for a program that takes its time.
void HUNG_TASK() {
  put("/proc/sys/kernel/hung_task_timeout_secs", "1");
  mkdir("/sbin", 0755);
  put("/sbin/request-key", "#!/bin/sh\nsleep 1000\n");
  syscall(SYS_request_key, "user", "key", "information", 0);
}

void DISK_FULL() {
  static uint8_t bytes[1 << 20];
  hil::set_log_sink(hil::platform::write_log);
  mkdir("/full", 0755);
  mount("tmpfs", "/full", "tmpfs", 0, "size=64k");
  hil::platform::write_file("/full/s0-0.bin", {bytes, sizeof(bytes)});
}

// QEMU reports the attempt in its own name.
void OPENS_FIFO() {
  mkfifo("/work/pipe", 0644);
  open("/work/pipe", O_RDWR);
  exit(1);
}

void POWERS_OFF() { reboot(RB_POWER_OFF); }

void RESETS() { reboot(RB_AUTOBOOT); }

void TAKES_SSH_DOWN() {
  system("killall dropbear");
  exit(0);
}

void SLEEPS() { sleep(100000); }

struct Ending {
  const char* name;
  void (*end)();
};
constexpr Ending kEndings[] = {
    {"PANIC", PANIC},
    {"OUT_OF_MEMORY", OUT_OF_MEMORY},
    {"UNTOLD_SEGFAULT", UNTOLD_SEGFAULT},
    {"SEGFAULT", SEGFAULT},
    {"HUNG_TASK", HUNG_TASK},
    {"DISK_FULL", DISK_FULL},
    {"OPENS_FIFO", OPENS_FIFO},
    {"POWERS_OFF", POWERS_OFF},
    {"RESETS", RESETS},
    {"TAKES_SSH_DOWN", TAKES_SSH_DOWN},
    {"SLEEPS", SLEEPS},
    {"\177ELF", OOPS},
};

}  // namespace

int main() {
  char given[32] = {};
  const int file = open("program.pte", O_RDONLY);
  if (read(file, given, sizeof(given) - 1) < 0) return 2;
  for (const Ending& one : kEndings) {
    if (strncmp(given, one.name, strlen(one.name)) == 0) one.end();
  }
  return 1;
}
