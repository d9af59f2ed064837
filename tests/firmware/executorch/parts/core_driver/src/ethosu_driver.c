/* No NPU is driven here: whoever has none is told so. */
#include "ethosu_driver.h"

static struct ethosu_driver *registered;

__attribute__((weak)) void ethosu_inference_begin(struct ethosu_driver *drv, void *user_arg) {
  (void)drv;
  (void)user_arg;
}

__attribute__((weak)) void ethosu_inference_end(struct ethosu_driver *drv, void *user_arg) {
  (void)drv;
  (void)user_arg;
}

int ethosu_init(struct ethosu_driver *drv, void *base, const void *fast_memory,
                size_t fast_memory_size, uint32_t secure, uint32_t privileged) {
  (void)fast_memory;
  (void)fast_memory_size;
  (void)secure;
  (void)privileged;
  drv->base = base;
  registered = drv;
  return 0;
}

struct ethosu_driver *ethosu_reserve_driver(void) {
  if (registered != NULL) registered->reserved = 1;
  return registered;
}

void ethosu_release_driver(struct ethosu_driver *drv) { drv->reserved = 0; }

int ethosu_invoke_v3(struct ethosu_driver *drv, const void *commands, int size,
                     const uint64_t *base_addr, const size_t *base_addr_size, int count,
                     void *user_arg) {
  (void)commands;
  (void)size;
  (void)base_addr;
  (void)base_addr_size;
  (void)count;
  ethosu_inference_begin(drv, user_arg);
  ethosu_inference_end(drv, user_arg);
  return -1;
}
