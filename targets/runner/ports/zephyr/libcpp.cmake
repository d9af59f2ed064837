# Zephyr's minimal C++ library has three headers; the runner, and FlatBuffers' headers, use some
# more, which need nothing of the library behind them. Where the application asks for no full C++
# library, the compiler's own headers are put in front of the C library's, as the compiler does.
function(hil_cpp_headers target)
  if(CONFIG_REQUIRES_FULL_LIBCPP)
    return()
  endif()
  separate_arguments(_flags NATIVE_COMMAND "${CMAKE_CXX_FLAGS}")
  execute_process(
    COMMAND ${CMAKE_CXX_COMPILER} ${_flags} ${TOOLCHAIN_C_FLAGS} -xc++ -E -v -
    INPUT_FILE /dev/null OUTPUT_QUIET ERROR_VARIABLE _said)
  string(REGEX MATCHALL "\n /[^\n]*/c\\+\\+/[^\n]*" _found "${_said}")
  list(TRANSFORM _found STRIP)
  if(NOT _found)
    message(FATAL_ERROR "${CMAKE_CXX_COMPILER} has no C++ headers (its libstdc++). "
      "On Debian: apt-get install libstdc++-arm-none-eabi-dev")
  endif()
  target_include_directories(${target} SYSTEM BEFORE INTERFACE ${_found})
endfunction()
