// Memory that the start-up does not clear (NOLOAD): whoever uses it writes before it reads.
#pragma once

#define HIL_POOL(name) __attribute__((section(".pool." #name))) alignas(32)
