#include <stdint.h>

extern uint32_t z_data_start[], z_data_end[], z_data_load[], z_bss_start[], z_bss_end[];
extern uint32_t z_stack_top[];
extern void (*z_init_start[])(void), (*z_init_end[])(void);
void z_cstart(void);
void z_reset(void);

__attribute__((used)) void z_spurious_interrupt(void) {
  for (;;) __asm__ volatile("bkpt 0");
}

__attribute__((section(".exc_vector_table"), used)) const uintptr_t z_vectors[16] = {
    (uintptr_t)z_stack_top,          (uintptr_t)z_reset,
    (uintptr_t)z_spurious_interrupt, (uintptr_t)z_spurious_interrupt,
    (uintptr_t)z_spurious_interrupt, (uintptr_t)z_spurious_interrupt,
    (uintptr_t)z_spurious_interrupt, (uintptr_t)z_spurious_interrupt,
};

__attribute__((noinline, used)) static void z_prepare(void) {
  const uint32_t *from = z_data_load;
  for (uint32_t *to = z_data_start; to < z_data_end;) *to++ = *from++;
  for (uint32_t *to = z_bss_start; to < z_bss_end;) *to++ = 0;
  for (void (**each)(void) = z_init_start; each < z_init_end; ++each) (*each)();
  z_cstart();
}

__attribute__((naked)) void z_reset(void) {
  __asm__ volatile(
      "ldr r0, =0xE000ED88\n ldr r1, [r0]\n orr r1, r1, #(0xF << 20)\n str r1, [r0]\n"
      "dsb\n isb\n b z_prepare\n");
}
