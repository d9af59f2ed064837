"""The FVP's command line on top of QEMU, for scripts and suites written for the FVP.

What runs is QEMU's ``mps3-an547`` (the Corstone SSE-300 board with a Cortex-M55), and beside it
the functional model of the NPU (``harness/ethosu``); nothing in here is a result of an Arm model.
Without an NPU only the standard library is imported, because a suite starts this program
hundreds of times.
"""
