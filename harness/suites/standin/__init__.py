"""The FVP's command line on top of QEMU, for scripts and suites written for the FVP.

QEMU's ``mps3-an547`` (the Corstone SSE-300 board with a Cortex-M55) runs the program, and the
functional model of the NPU (``harness/npu``) runs beside it. No result is a result of an Arm model.
The command imports only the standard library: a suite starts it hundreds of times. The NPU model
needs numpy, and is a process of its own that starts with the first job.
"""

from __future__ import annotations

OWN_FAULT = 1  # exit status for a command line or a program that cannot be run


class StandinError(Exception):
    """The model would refuse this, or the stand-in cannot do it. The message is for people."""
