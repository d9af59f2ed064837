# Which operators of the portable library a runner has (HIL_PORTABLE_KERNELS):
#   OFF              none
#   aten::a.out,...  these, in the place of the runner's own kernels where it has some
#   ON               all that the runner has no kernel of its own for
#   EVERY            all, in the place of its own

# The operators of a file's HIL_OPERATOR lines, each with its kernel: "name|function".
function(hil_operators FILE OUT)
  file(READ "${FILE}" _text)
  string(REGEX MATCHALL "\nHIL_OPERATOR\\([^)]*\\)" _lines "${_text}")
  set(_found "")
  foreach(_line ${_lines})
    if(NOT _line MATCHES "\\([ \n]*\"([^\"]+)\",[ \n]*([A-Za-z_0-9]+)\\)$")
      message(FATAL_ERROR "${FILE}: not a name and a kernel:${_line}")
    endif()
    list(APPEND _found "${CMAKE_MATCH_1}|${CMAKE_MATCH_2}")
  endforeach()
  set(${OUT} "${_found}" PARENT_SCOPE)
endfunction()

function(hil_split LINE NAME FUNCTION)
  string(REPLACE "|" ";" _parts "${LINE}")
  list(GET _parts 0 _name)
  list(GET _parts 1 _function)
  set(${NAME} "${_name}" PARENT_SCOPE)
  set(${FUNCTION} "${_function}" PARENT_SCOPE)
endfunction()

# Whether CHOICE has an operator; PLACE is -1 for one that the runner has no kernel of its own for.
function(hil_is_chosen NAME CHOICE PLACE OUT)
  string(REPLACE "," ";" _listed "${CHOICE}")
  set(_chosen OFF)
  if(CHOICE STREQUAL "EVERY" OR NAME IN_LIST _listed OR (CHOICE STREQUAL "ON" AND PLACE EQUAL -1))
    set(_chosen ON)
  endif()
  set(${OUT} ${_chosen} PARENT_SCOPE)
endfunction()

# Those of FILES that a choice needs: the ones with no operator, and the ones with a chosen one.
function(hil_needed_files FILES CHOICE OUT)
  set(_needed "")
  foreach(_file ${FILES})
    hil_operators("${_file}" _found)
    set(_wanted ON)
    foreach(_line ${_found})
      hil_split("${_line}" _name _function)
      hil_is_chosen("${_name}" "${CHOICE}" -1 _wanted)
      if(_wanted)
        break()
      endif()
    endforeach()
    if(_wanted)
      list(APPEND _needed "${_file}")
    endif()
  endforeach()
  set(${OUT} "${_needed}" PARENT_SCOPE)
endfunction()
