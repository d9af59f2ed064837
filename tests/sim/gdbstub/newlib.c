// A program as other people link it: newlib's own start-up, which asks for SYS_HEAPINFO before
// main, its malloc and its files. -D chooses what it does.
#include <stdio.h>
#include <stdlib.h>

extern void _start(void);
extern char __stack[], end[];
__attribute__((section(".vectors"), used)) void* const vectors[2] = {__stack, _start};

struct Block {
  unsigned heap_base, heap_limit, stack_base, stack_limit;
};

#ifdef THROUGH_FUNCTION  // one function for all calls, with the operation passed on in r0
__attribute__((naked, noinline)) static int semihosting(int operation, void* block) {
  __asm__ volatile("bkpt 0xAB\n bx lr");
}
#else  // as newlib's system calls do it: through whatever registers are free
static inline int semihosting(int operation, void* block) {
  int result;
  __asm__ volatile("mov r0, %1\n mov r1, %2\n bkpt 0xAB\n mov %0, r0"
                   : "=r"(result)
                   : "r"(operation), "r"(block)
                   : "r0", "r1", "memory");
  return result;
}
#endif

// SYS_ISERROR, at a call that might as well be SYS_HEAPINFO.
__attribute__((noinline)) static int is_error(int status, int heap) {
  int* const block = &status;
  int result;
  __asm__ volatile("movs r0, #0x16\n cmp %1, #0\n it eq\n moveq.w r0, #0x08\n mov r1, %2\n"
                   "bkpt 0xAB\n mov %0, r0"
                   : "=r"(result)
                   : "r"(heap), "r"(block)
                   : "r0", "r1", "cc", "memory");
  return result;
}

int main(int argc, char** argv) {
  struct Block block = {1, 1, 1, 1};
  struct Block* place = &block;
#ifdef LATE
  for (int call = 0; call < LATE; call++) is_error(0, 0);
#endif
  semihosting(0x16, &place);
  printf("block %x %x %x %x\n", block.heap_base, block.heap_limit, block.stack_base,
         block.stack_limit);
  printf("errors %d %d\n", is_error(0, 0) != 0, is_error(-1, 0) != 0);
  printf("arguments %d %s\n", argc, argc ? argv[argc - 1] : "none");
  char* const memory = malloc(100000);
  printf("malloc %s\n", memory ? "behind the program" : "failed");
  FILE* const file = fopen("out.txt", "w");
  printf("file %d\n", file != NULL && fputs("written", file) >= 0 && fclose(file) == 0);
  fflush(stdout);
#ifdef STATUS
  _Exit(STATUS);
#endif
  return 0;
}
