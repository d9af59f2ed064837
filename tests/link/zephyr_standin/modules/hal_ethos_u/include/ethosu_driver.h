#pragma once
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
struct ethosu_driver {
  void* base;
};
int ethosu_init(struct ethosu_driver* drv, void* const base, const void* fast, const size_t size,
                uint32_t secure, uint32_t privileged);
struct ethosu_driver* ethosu_reserve_driver(void);
void ethosu_release_driver(struct ethosu_driver* drv);
int ethosu_invoke_v3(struct ethosu_driver* drv, const void* data, const int size,
                     uint64_t* const bases, const size_t* sizes, const int count, void* user);
#ifdef __cplusplus
}
#endif
