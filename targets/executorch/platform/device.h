// The device's header of the SDK, as far as ExecuTorch's runner uses it: CMSIS's access to the
// Cortex-M55's cycle counter. (Arm Cortex-M55 Processor Technical Reference Manual, Performance
// Monitoring Unit; what core_cm55.h asks of a device's header.) QEMU has no counter and reads as 0.
#pragma once

typedef enum { NonMaskableInt_IRQn = -14, SysTick_IRQn = -1 } IRQn_Type;

#define __CM55_REV 0x0000U
#define __DSP_PRESENT 1U
#define __FPU_PRESENT 1U
#define __MPU_PRESENT 1U
#define __NVIC_PRIO_BITS 3U
#define __PMU_PRESENT 1U
#define __PMU_NUM_EVENTCNT 8U
#define __Vendor_SysTickConfig 0U

#include "core_cm55.h"
