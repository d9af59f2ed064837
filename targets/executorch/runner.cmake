# Read into ExecuTorch's project arm_executor_runner, and at work when the whole of it is known.
#
# HIL_QEMU_MAP: its program for a Corstone-320 is to run on QEMU's mps3-an547. It gets the checkout's
# own linker script, with three regions where that board has memory. It starts at the vector table in
# the ITCM; the FPGA's SRAM (BRAM) is at 0x11000000 (QEMU 7.2, `info mtree`). Everything else lies
# alike on both.
set(HIL_QEMU_REGIONS
    "BROM=0x10000000:0x8000" "ITCM=0x10008000:0x8000" "BRAM=0x11000000:0x200000")

function(hil_link_for_qemu)
  get_target_property(options arm_executor_runner LINK_OPTIONS)
  list(FIND options "-T" flag)
  if(flag EQUAL -1)
    message(FATAL_ERROR "arm_executor_runner is linked without -T: its linker script is not known")
  endif()
  math(EXPR at "${flag} + 1")
  list(GET options ${at} script)
  file(READ "${script}" text)
  foreach(region IN LISTS HIL_QEMU_REGIONS)
    string(REGEX MATCH "^(.+)=(.+):(.+)$" whole "${region}")
    set(name "${CMAKE_MATCH_1}")  # the next match takes it away
    # a definition: "> NAME :segment" is a use
    set(origin "[ \t]*(ORIGIN|org|o)[ \t]*=[^\n]*")
    set(pattern "([ \t\n]${name}[ \t]*(\\([^)\n]*\\))?[ \t]*:)${origin}")
    set(there "ORIGIN = ${CMAKE_MATCH_2}, LENGTH = ${CMAKE_MATCH_3}")
    if(NOT text MATCHES "${pattern}")
      message(FATAL_ERROR "${script} has no memory region ${name} to be moved")
    endif()
    string(REGEX REPLACE "${pattern}" "\\1 ${there}" text "${text}")
  endforeach()
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/qemu_map.ld" CONTENT "${text}" @ONLY)
  list(REMOVE_AT options ${at})
  list(INSERT options ${at} "${CMAKE_BINARY_DIR}/qemu_map.ld")
  set_target_properties(arm_executor_runner PROPERTIES LINK_OPTIONS "${options}")
endfunction()

# Of ExecuTorch's 170 portable kernels only those that the runner registers are compiled: the others
# are two thirds of the time of a first build. kernels/portable/functions.yaml says what the functions
# of an operator are called. A kernel that moves into a file that was left out configures anew.
function(hil_compile_selected_kernels)
  if(NOT TARGET portable_kernels)
    return()
  endif()
  set(portable "${EXECUTORCH_ROOT}/kernels/portable")
  file(READ "${portable}/functions.yaml" declared)
  string(REPLACE ";" "," declared "${declared}")
  string(REGEX MATCHALL "- (op|func): [^ (\n]+|kernel_name: [A-Za-z0-9_:]+" words "${declared}")
  string(REPLACE "," ";" selected "${EXECUTORCH_SELECT_OPS_LIST}")
  set(wanted "")
  set(is_selected FALSE)
  foreach(word IN LISTS words)
    if(word MATCHES "^- (op|func): (.+)$")
      set(operator "${CMAKE_MATCH_2}")
      set(is_selected FALSE)
      if(operator IN_LIST selected OR "aten::${operator}" IN_LIST selected)
        set(is_selected TRUE)
      endif()
    elseif(is_selected)
      string(REGEX REPLACE ".*:" "" function "${word}")
      list(APPEND wanted "${function}")
    endif()
  endforeach()
  list(JOIN wanted "|" pattern)
  get_target_property(sources portable_kernels SOURCES)
  set(kept "")
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" uses REGEX "(^|[^A-Za-z0-9_])(${pattern})\\(" LIMIT_COUNT 1)
    if(uses OR NOT source MATCHES "/cpu/op_[^/]+$")
      list(APPEND kept "${source}")
    else()
      set_property(
        DIRECTORY "${CMAKE_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
    endif()
  endforeach()
  set_target_properties(portable_kernels PROPERTIES SOURCES "${kept}")
endfunction()

cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL hil_compile_selected_kernels)
if(HIL_QEMU_MAP)
  cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL hil_link_for_qemu)
endif()
