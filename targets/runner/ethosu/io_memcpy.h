// Every copy between a tensor and the NPU's scratch goes through here. The name is ExecuTorch's
// (backends/arm/runtime), so that firmware that moves data by DMA can override it in both.
#pragma once

#include <cstddef>

extern "C" void arm_ethos_io_memcpy(void* destination, const void* source, size_t bytes);
