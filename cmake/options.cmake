# Compiler options every piece of the runner is built with: target hil_options.
option(HIL_RUNTIME_CHECKS "Kernels check what the exporter planned for them" ON)
set(HIL_PORTABLE_KERNELS OFF CACHE STRING
  "Operators of kernels/portable: OFF, names with commas between, ON or EVERY (kernels/choice.cmake)")
option(HIL_VALUE_DIGESTS "Log a checksum of what each instruction writes" OFF)
option(HIL_UNITY_BUILD "Compile what reads FlatBuffers as one file" ON)
if(HIL_PORT STREQUAL "zephyr")
  set(HIL_UNITY_BUILD OFF)  # the map of a user's application names the file of each symbol
endif()
option(HIL_SANITIZE "AddressSanitizer and UndefinedBehaviorSanitizer (host)" OFF)
option(HIL_FUZZ "Build the libFuzzer targets (host, clang)" OFF)

set(HIL_ARITHMETIC "cmsis-nn" CACHE STRING
  "Whose arithmetic kernels follow: cmsis-nn (ExecuTorch's C++) or python (its definitions)")
set_property(CACHE HIL_ARITHMETIC PROPERTY STRINGS cmsis-nn python)
if(NOT HIL_ARITHMETIC MATCHES "^(cmsis-nn|python)$")
  message(FATAL_ERROR "HIL_ARITHMETIC is '${HIL_ARITHMETIC}', and can be cmsis-nn or python")
endif()

option(HIL_ETHOSU "The Ethos-U backend" OFF)
set(HIL_BACKENDS "" CACHE STRING "Folders of further backends")
set(HIL_ETHOSU_DRIVER "doorbell" CACHE STRING
  "How the NPU is reached: doorbell (the stand-in on QEMU) or registers (an FVP or a board)")
set(HIL_ETHOSU_BASE 0x58102000 CACHE STRING "Register block of the NPU (Corstone-300, Secure)")
set(HIL_ETHOSU_FAST_SCRATCH_BYTES 0 CACHE STRING "Fast scratch, base pointer 2; 0 for none")
option(HIL_ETHOSU_COUNT_IO "Override the copies of the Ethos-U backend by ones that count" OFF)

set(HIL_METHOD_POOL_BYTES 1572864 CACHE STRING "Values, instructions and planned buffers")
set(HIL_TEMP_POOL_BYTES 262144 CACHE STRING "Scratch of backends during one instruction")
set(HIL_FILE_POOL_BYTES 33554432 CACHE STRING "The program and its input files")
set(HIL_POOL_DEFINITIONS
  HIL_METHOD_POOL_BYTES=${HIL_METHOD_POOL_BYTES}
  HIL_TEMP_POOL_BYTES=${HIL_TEMP_POOL_BYTES}
  HIL_FILE_POOL_BYTES=${HIL_FILE_POOL_BYTES})

set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

add_library(hil_options INTERFACE)
# A header, not definitions: few kernels include it, and the compiler's cache has the others.
string(CONCAT _options "#pragma once\n"
  "#define HIL_RUNTIME_CHECKS $<BOOL:${HIL_RUNTIME_CHECKS}>\n"
  "#define HIL_FOLLOWS_PYTHON $<STREQUAL:${HIL_ARITHMETIC},python>\n")
file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/options/hil_options.h" CONTENT "${_options}")
target_include_directories(hil_options INTERFACE
  ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_BINARY_DIR}/options)
target_compile_options(hil_options INTERFACE
  -fno-exceptions -fno-rtti -Wall -Wextra -Wshadow -ffunction-sections -fdata-sections -g
  "-ffile-prefix-map=${CMAKE_BINARY_DIR}=build" "-ffile-prefix-map=${CMAKE_CURRENT_SOURCE_DIR}=.")
# Under Zephyr the warnings are also Zephyr's, and another version may have others; its headers
# convert, and Twister takes warnings for errors.
if(NOT HIL_PORT STREQUAL "zephyr")
  target_compile_options(hil_options INTERFACE -Wconversion -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # GCC's -Wconversion leaves signs out in C++; clang, which only the sanitized build uses, does not.
  target_compile_options(hil_options INTERFACE -Wno-sign-conversion)
endif()
if(HIL_SANITIZE)
  # -g1: reports name functions and lines; types and variables would be a quarter of the time.
  target_compile_options(hil_options INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -UNDEBUG -O1 -g1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With UBSan's null checks inlined, GCC 12 takes FlatBuffers' strings for empty arrays.
    target_compile_options(hil_options INTERFACE -Wno-stringop-overread)
  endif()
  target_link_options(hil_options INTERFACE -fsanitize=address,undefined)
endif()
if(HIL_FUZZ)
  target_compile_options(hil_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
