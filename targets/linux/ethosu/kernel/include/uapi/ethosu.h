/* The one name that programs take from the kernel's header of Arm's driver stack; ExecuTorch's
 * Ethos-U backend for Linux includes it by this path. The interface itself is ../../../uapi.h. */
#ifndef HIL_UAPI_ETHOSU_H
#define HIL_UAPI_ETHOSU_H

#include "../../../uapi.h"

#define ETHOSU_PMU_EVENT_MAX HIL_ETHOSU_PMU_MAX

#endif
