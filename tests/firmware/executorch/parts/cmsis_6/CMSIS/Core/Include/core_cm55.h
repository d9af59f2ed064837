/* Stands for CMSIS's header of the core. */
#define __CORTEX_M (55U)
