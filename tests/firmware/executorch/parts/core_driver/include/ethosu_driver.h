/* The names of ethos-u-core-driver's public interface that a runner uses. */
#ifndef ETHOSU_DRIVER_H
#define ETHOSU_DRIVER_H

#include <stddef.h>
#include <stdint.h>

struct ethosu_driver {
  void *base;
  uint32_t reserved;
};

int ethosu_init(struct ethosu_driver *drv, void *base, const void *fast_memory,
                size_t fast_memory_size, uint32_t secure, uint32_t privileged);
struct ethosu_driver *ethosu_reserve_driver(void);
void ethosu_release_driver(struct ethosu_driver *drv);
int ethosu_invoke_v3(struct ethosu_driver *drv, const void *commands, int size,
                     const uint64_t *base_addr, const size_t *base_addr_size, int count,
                     void *user_arg);
void ethosu_inference_begin(struct ethosu_driver *drv, void *user_arg);
void ethosu_inference_end(struct ethosu_driver *drv, void *user_arg);

#endif
