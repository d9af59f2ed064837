#include <string.h>
#include <zephyr/arch/common/semihost.h>

long semihost_exec(enum semihost_instr instr, void *args) {
  register long r0 __asm__("r0") = instr;
  register void *r1 __asm__("r1") = args;
  __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

long semihost_open(const char *path, long mode) {
  long args[] = {(long)path, mode, (long)strlen(path)};
  return semihost_exec(SEMIHOST_OPEN, args);
}

long semihost_close(long fd) { return semihost_exec(SEMIHOST_CLOSE, &fd); }

long semihost_flen(long fd) { return semihost_exec(SEMIHOST_FLEN, &fd); }

long semihost_read(long fd, void *buf, long len) {
  long args[] = {fd, (long)buf, len};
  long left = semihost_exec(SEMIHOST_READ, args);
  if (left == len) return -5; /* -EIO */
  return left == 0 ? len : left; /* as Zephyr does: what is left, when it fell short */
}

long semihost_write(long fd, const void *buf, long len) {
  long args[] = {fd, (long)buf, len};
  return semihost_exec(SEMIHOST_WRITE, args);
}
