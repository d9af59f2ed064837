#include "flatcc/flatcc.h"

int flatcc_runtime(void) { return 1; }
