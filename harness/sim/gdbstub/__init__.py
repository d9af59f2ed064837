"""Host calls of a guest on QEMU, emulated through QEMU's gdb stub while it runs.

A program that was built for an Arm FVP expects what the model has and QEMU lacks: an Ethos-U for
ethos-u-core-driver, and a SYS_HEAPINFO that returns the model's parameters. Its ELF is not
changed: it stops at breakpoints where it makes such a call, and continues with the answer.
"""
