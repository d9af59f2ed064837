# Bare-metal Arm Cortex-M with GNU tools. HIL_CPU picks the core ("cortex-m55").
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(HIL_CPU "cortex-m55" CACHE STRING "Core, as -mcpu names it")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HIL_CPU)

set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

# Cores that never have a floating-point unit.
set(_float_abi hard)
if(HIL_CPU MATCHES "^cortex-m(0|0plus|1|3|23)$")
  set(_float_abi soft)
endif()
set(_cpu_flags "-mcpu=${HIL_CPU} -mthumb -mfloat-abi=${_float_abi}")
set(CMAKE_C_FLAGS_INIT "${_cpu_flags}")
set(CMAKE_CXX_FLAGS_INIT "${_cpu_flags}")
set(CMAKE_ASM_FLAGS_INIT "${_cpu_flags}")

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
