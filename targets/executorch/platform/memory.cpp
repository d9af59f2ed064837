// posix_memalign, which ExecuTorch's etdump calls and newlib for bare metal does not have.
#include <malloc.h>

#include <cerrno>
#include <cstddef>

extern "C" __attribute__((weak)) int posix_memalign(void** result, size_t alignment, size_t size) {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* const block = memalign(alignment, size);
  if (block == nullptr && size != 0) return ENOMEM;
  *result = block;
  return 0;
}
