"""The FVP's command line on top of QEMU, for scripts and suites written for the FVP.

What runs is QEMU's ``mps3-an547`` (the Corstone SSE-300 board with a Cortex-M55); it has no NPU,
and nothing in here is a result of an Arm model. Only the standard library is imported, because
a suite starts this program hundreds of times.
"""
