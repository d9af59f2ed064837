#pragma once
/* Names of Zephyr's semihosting API; numbers of Arm's semihosting specification. */
enum semihost_instr {
  SEMIHOST_OPEN = 1,
  SEMIHOST_CLOSE = 2,
  SEMIHOST_WRITE = 5,
  SEMIHOST_READ = 6,
  SEMIHOST_FLEN = 12,
  SEMIHOST_GET_CMDLINE = 21
};
enum semihost_open_mode { SEMIHOST_OPEN_RB = 1, SEMIHOST_OPEN_W = 4, SEMIHOST_OPEN_WB = 5 };
long semihost_exec(enum semihost_instr instr, void *args);
long semihost_open(const char *path, long mode);
long semihost_close(long fd);
long semihost_flen(long fd);
long semihost_read(long fd, void *buf, long len);
long semihost_write(long fd, const void *buf, long len);
