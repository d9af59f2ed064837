# Read into ExecuTorch's project, when its executor_runner is built for a Linux target: what the
# harness wants of that program and CMake can say without an edit of the checkout.
#
# One file without a library, like the bundled runner: it runs in whatever root file system. With
# its symbols, which name the place of a fault; the guest gets a copy without them.
set(HIL_RUNNER "${CMAKE_CURRENT_LIST_DIR}/../../runner")
set(HIL_LINUX "${CMAKE_CURRENT_LIST_DIR}")

function(hil_complete_runner)
  target_sources(executor_runner PRIVATE
    "${HIL_LINUX}/platform.cpp" "${HIL_RUNNER}/ports/linux/signals.cpp"
    "${HIL_RUNNER}/core/format.cpp")
  target_include_directories(executor_runner PRIVATE "${HIL_RUNNER}")
  get_target_property(sources executor_runner SOURCES)
  list(FILTER sources INCLUDE REGEX "executor_runner\\.cpp$")
  set_property(SOURCE ${sources} APPEND PROPERTY
    COMPILE_OPTIONS "-include" "${HIL_LINUX}/temp_memory.h")
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS "${HIL_LINUX}/temp_memory.h")
  target_link_options(executor_runner PRIVATE -static -Wl,--gc-sections
    "-Wl,-Map=$<TARGET_FILE:executor_runner>.map")
  # The operators of programs that are lowered for a Cortex-M, which the runner itself leaves out.
  target_link_libraries(executor_runner PRIVATE cortex_m_ops_lib)
  # ExecuTorch links the backend whole, and once more by the list of its backends, which CMake
  # before 3.30 refuses. Here it is a library like others, and whole as the linker says it.
  set(backend executorch_delegate_ethos_u)
  if(TARGET ${backend})
    set_property(TARGET executor_runner PROPERTY LINK_LIBRARY_OVERRIDE "DEFAULT,${backend}")
    target_link_options(executor_runner PRIVATE
      "LINKER:--whole-archive,$<TARGET_FILE:${backend}>,--no-whole-archive")
  endif()
  add_custom_command(TARGET executor_runner POST_BUILD
    COMMAND ${CMAKE_STRIP} -o "$<TARGET_FILE:executor_runner>.stripped"
      "$<TARGET_FILE:executor_runner>"
    VERBATIM)
endfunction()

cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL hil_complete_runner)
