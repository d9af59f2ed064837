/* The names and arguments of the driver's functions, for a simulator that answers their calls. By
 * itself it finds no NPU. */
#include <ethosu_driver.h>
#include <zephyr/device.h>

#define ANSWERED __attribute__((noipa))

static struct ethosu_driver npu;
struct device standin_device_arm_ethos_u;

ANSWERED int ethosu_init(struct ethosu_driver* drv, void* const base, const void* fast,
                         const size_t size, uint32_t secure, uint32_t privileged) {
  (void)fast, (void)size, (void)secure, (void)privileged;
  drv->base = base;
  return -1; /* no NPU */
}

ANSWERED struct ethosu_driver* ethosu_reserve_driver(void) { return NULL; }

ANSWERED void ethosu_release_driver(struct ethosu_driver* drv) { drv->base = NULL; }

ANSWERED int ethosu_invoke_v3(struct ethosu_driver* drv, const void* data, const int size,
                              uint64_t* const bases, const size_t* sizes, const int count,
                              void* user) {
  (void)drv, (void)data, (void)size, (void)bases, (void)sizes, (void)count, (void)user;
  return -1;
}

__attribute__((constructor)) static void start(void) {
  standin_device_arm_ethos_u.ready = ethosu_init(&npu, (void*)0x48102000, NULL, 0, 1, 1) == 0;
}
