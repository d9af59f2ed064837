// Memory that Zephyr does not clear: regions of the devicetree (compatible zephyr,memory-region).
// HIL_REGION_OF_method and so on are the CMake options HIL_METHOD_POOL_PLACE and so on.
#pragma once

#define HIL_PLACE_SRAM CONFIG_HIL_SRAM_REGION
#define HIL_PLACE_DDR CONFIG_HIL_DDR_REGION
#define HIL_REGION_OF_doorbell HIL_PLACE_DDR

#define HIL_POOL(name) __attribute__((section(HIL_REGION_OF_##name "." #name))) alignas(32)
