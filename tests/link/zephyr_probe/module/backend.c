void arm_ethos_io_memcpy(void *to, const void *from, unsigned size);
int probe_execute(char *to, const char *from);
int probe_execute(char *to, const char *from) {
  arm_ethos_io_memcpy(to, from, 16);
  return to[0];
}
