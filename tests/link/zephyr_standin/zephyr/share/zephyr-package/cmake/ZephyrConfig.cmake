# find_package(Zephyr): toolchain, targets and functions, and the link once the application's
# CMakeLists.txt has been read.
get_filename_component(ZEPHYR_BASE "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(APPLICATION_SOURCE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
set(APPLICATION_BINARY_DIR "${CMAKE_CURRENT_BINARY_DIR}")
include(${ZEPHYR_BASE}/cmake/toolchain.cmake)
project(Zephyr LANGUAGES C CXX ASM)
find_program(CCACHE_FOUND ccache) # as Zephyr does
if(CCACHE_FOUND)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_FOUND})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_FOUND})
endif()
include(${ZEPHYR_BASE}/cmake/kconfig.cmake)
include(${ZEPHYR_BASE}/cmake/functions.cmake)

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_library(zephyr_interface INTERFACE)
target_include_directories(zephyr_interface INTERFACE ${ZEPHYR_BASE}/include)
target_compile_options(zephyr_interface INTERFACE -Os -g -ffunction-sections -fdata-sections
  -imacros ${AUTOCONF_H} $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>
  $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
file(WRITE ${APPLICATION_BINARY_DIR}/empty_file.c "")
add_library(app STATIC)
target_link_libraries(app PRIVATE zephyr_interface)
set_property(GLOBAL PROPERTY ZEPHYR_LIBS app)
add_subdirectory(${ZEPHYR_BASE} ${APPLICATION_BINARY_DIR}/zephyr)
standin_modules()
cmake_language(DEFER DIRECTORY ${APPLICATION_SOURCE_DIR} CALL standin_link)
