# Linux on a 64-bit Arm Cortex-A with GNU tools. HIL_CPU picks the core ("cortex-a35").
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(HIL_CPU "cortex-a35" CACHE STRING "Core, as -mcpu names it")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HIL_CPU)

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_STRIP aarch64-linux-gnu-strip)

set(CMAKE_C_FLAGS_INIT "-mcpu=${HIL_CPU}")
set(CMAKE_CXX_FLAGS_INIT "-mcpu=${HIL_CPU}")

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
