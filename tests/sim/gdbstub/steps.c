// Runs instructions as ExecuTorch's runtime does, by the name of its function; the nth one loops n
// times. The board's counter counts instructions, as targets/executorch/platform sets it up.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern void _start(void);
extern char __stack[];
__attribute__((section(".vectors"), used)) void* const vectors[2] = {__stack, _start};

#ifndef NAME
#define NAME "_ZN10executorch7runtime6Method19execute_instructionEv"
#endif
void step(unsigned n) __asm__(NAME);
__attribute__((naked, noipa)) void step(unsigned n) {
  __asm__ volatile("nop\n 1: subs r0, #1\n bne 1b\n bx lr");
}

int main(void) {
  volatile uint32_t* const counter = (volatile uint32_t*)0x58100000;
  counter[0] = 0;
  counter[4] = 16384000;
  counter[0] = 5;
  for (unsigned n = 1; n <= STEPS; ++n) {
    step(n);
    printf("done %u\n", n);
    fflush(stdout);
  }
  return 0;
}
