# Read into ExecuTorch's project arm_executor_runner, when its program for a Corstone-320 is to run
# on QEMU's mps3-an547: the checkout's own linker script, with three regions where that board has
# memory. It starts at the vector table in the ITCM; the FPGA's SRAM (BRAM) is at 0x11000000
# (QEMU 7.2, `info mtree`). Everything else lies alike on both.
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

cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL hil_link_for_qemu)
