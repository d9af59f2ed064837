/* Stands for CMSIS's header of the core. */
#define __CORTEX_M (55U)
#if defined(__PMU_PRESENT) && __PMU_PRESENT
static inline void ARM_PMU_Enable(void) {}
#endif
