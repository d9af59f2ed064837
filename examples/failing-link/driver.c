#include <stddef.h>

void arm_ethos_io_memcpy(void* to, const void* from, size_t bytes);

void copy(char* to, const char* from) {
  arm_ethos_io_memcpy(to, from, 16);
}
