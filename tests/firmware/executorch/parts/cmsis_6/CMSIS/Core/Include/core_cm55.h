/* Stands for CMSIS's header of the core. */
#define __CORTEX_M (55U)
#if defined(__PMU_PRESENT) && __PMU_PRESENT
extern const int __copy_table_start__; /* as CMSIS declares it, not as the start-up does */
static inline void ARM_PMU_Enable(void) {}
#endif
