# Bare-metal Cortex-M. SEMIHOSTING picks newlib's semihosting.
set(TARGET_CPU "cortex-m55" CACHE STRING "Core")
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR ${TARGET_CPU})
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_CXX_STANDARD 17)

# GCC 12 has no Cortex-M85, which runs code for a Cortex-M55.
string(REPLACE "cortex-m85" "cortex-m55" cpu "${TARGET_CPU}")
add_compile_options(-mcpu=${cpu} -mthumb -mfloat-abi=hard -ffunction-sections -fdata-sections
  "$<$<COMPILE_LANGUAGE:CXX>:-fno-rtti;-fno-exceptions>")
add_link_options(-mcpu=${cpu} -mthumb -mfloat-abi=hard LINKER:--nmagic,--gc-sections)
if(SEMIHOSTING)
  add_link_options(--specs=rdimon.specs)
endif()
# Not tried out: that would take as long as all else of a configuration. And ar writes the index.
foreach(language C CXX)
  set(CMAKE_${language}_ARCHIVE_CREATE "<CMAKE_AR> qcs <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_FINISH "")
  set(CMAKE_${language}_COMPILER_WORKS TRUE)
  set(CMAKE_${language}_ABI_COMPILED TRUE)
endforeach()
