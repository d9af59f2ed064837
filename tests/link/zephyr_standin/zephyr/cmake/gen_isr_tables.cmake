# The second pass knows an address of the first one.
execute_process(COMMAND arm-none-eabi-nm ${ELF} OUTPUT_VARIABLE _symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "([0-9a-f]+) . z_spurious_interrupt" _ "${_symbols}")
file(WRITE ${OUT} "const unsigned first_pass_address = 0x${CMAKE_MATCH_1};\n")
