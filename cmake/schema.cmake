# ExecuTorch's FlatBuffers schemas as C++ headers: target hil_schema.
set(HIL_SCHEMA_DIR "" CACHE PATH
  "Folder with ExecuTorch's program.fbs and scalar_type.fbs (executorch/schema in the wheel)")
set(HIL_BUNDLED_SCHEMA_DIR "" CACHE PATH
  "Folder with bundled_program_schema.fbs; found beside HIL_SCHEMA_DIR when empty")

if(NOT HIL_BUNDLED_SCHEMA_DIR)
  set(HIL_BUNDLED_SCHEMA_DIR "${HIL_SCHEMA_DIR}/../devtools/bundled_program/schema")
endif()
foreach(_schema "${HIL_SCHEMA_DIR}/program.fbs" "${HIL_SCHEMA_DIR}/scalar_type.fbs"
                "${HIL_BUNDLED_SCHEMA_DIR}/bundled_program_schema.fbs")
  if(NOT EXISTS "${_schema}")
    message(FATAL_ERROR "schema not found: ${_schema}. Set HIL_SCHEMA_DIR to the folder of "
      "program.fbs (site-packages/executorch/schema) and, when it is not beside that, "
      "HIL_BUNDLED_SCHEMA_DIR to the folder of bundled_program_schema.fbs.")
  endif()
endforeach()

find_path(HIL_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h PATHS /usr/include
  NO_CMAKE_FIND_ROOT_PATH)
# First the one beside the headers: an activated Python environment has ExecuTorch's own in PATH.
find_program(HIL_FLATC flatc HINTS "${HIL_FLATBUFFERS_INCLUDE}/../bin" NO_DEFAULT_PATH)
find_program(HIL_FLATC flatc)
if(NOT HIL_FLATC OR NOT HIL_FLATBUFFERS_INCLUDE)
  message(FATAL_ERROR "flatc or flatbuffers/flatbuffers.h not found. On Debian: "
    "apt-get install flatbuffers-compiler libflatbuffers-dev")
endif()

# Code from one flatc does not fit the headers of another.
execute_process(COMMAND ${HIL_FLATC} --version OUTPUT_VARIABLE _flatc_version)
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" _flatc_version "${_flatc_version}")
file(STRINGS "${HIL_FLATBUFFERS_INCLUDE}/flatbuffers/base.h" _version_lines
  REGEX "define FLATBUFFERS_VERSION_(MAJOR|MINOR|REVISION)")
string(REGEX MATCHALL "[0-9]+" _header_version "${_version_lines}")
list(JOIN _header_version "." _header_version)
if(NOT _flatc_version STREQUAL _header_version)
  message(FATAL_ERROR "flatc is ${_flatc_version} but flatbuffers' headers are ${_header_version}")
endif()

set(_include "${CMAKE_BINARY_DIR}/schema")
file(MAKE_DIRECTORY "${_include}")
# A cross compiler must see FlatBuffers' headers without the rest of /usr/include.
file(CREATE_LINK "${HIL_FLATBUFFERS_INCLUDE}/flatbuffers" "${_include}/flatbuffers" SYMBOLIC)
set(_headers "${_include}/scalar_type_generated.h" "${_include}/program_generated.h"
  "${_include}/bundled_program_schema_generated.h")
add_custom_command(
  OUTPUT ${_headers}
  COMMAND ${HIL_FLATC} --cpp -o "${_include}"
    "${HIL_SCHEMA_DIR}/scalar_type.fbs" "${HIL_SCHEMA_DIR}/program.fbs"
  COMMAND ${HIL_FLATC} --cpp -o "${_include}"
    "${HIL_BUNDLED_SCHEMA_DIR}/bundled_program_schema.fbs"
  DEPENDS "${HIL_SCHEMA_DIR}/scalar_type.fbs" "${HIL_SCHEMA_DIR}/program.fbs"
    "${HIL_BUNDLED_SCHEMA_DIR}/bundled_program_schema.fbs"
  VERBATIM)
add_custom_target(hil_schema_headers DEPENDS ${_headers})
add_library(hil_schema INTERFACE)
target_include_directories(hil_schema SYSTEM INTERFACE "${_include}")
add_dependencies(hil_schema hil_schema_headers)
