// Memory that Zephyr does not clear: a region of the devicetree (compatible zephyr,memory-region).
#pragma once

#define HIL_POOL(name) __attribute__((section(CONFIG_HIL_POOL_REGION "." name))) alignas(32)
