"""Host calls of a guest on QEMU, emulated through QEMU's gdb stub while it runs.

A program that was built for an Arm FVP expects what the model has and QEMU has not: an Ethos-U
behind ethos-u-core-driver, and a SYS_HEAPINFO that says what the model's parameters say. Its ELF
is not touched: the places where it asks are breakpoints, and it goes on with the answer.
"""
