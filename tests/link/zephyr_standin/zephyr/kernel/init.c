int main(void);
void z_cstart(void);

void z_cstart(void) {
  main();
  for (;;) __asm__ volatile("wfi");
}

void _exit(int status);
void _exit(int status) {
  (void)status;
  for (;;) __asm__ volatile("wfi");
}
