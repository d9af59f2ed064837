"""The FVP's command line on top of QEMU, for scripts and suites written for the FVP.

QEMU's ``mps3-an547`` (the Corstone SSE-300 board with a Cortex-M55) runs the program, and the
functional NPU model (``harness/npu``) runs next to it. No result is a result of an Arm model.
``main`` turns a model's command line into what ``harness/sim`` starts, serves and watches. A suite
starts it hundreds of times, so it imports little: numpy is for the NPU model's own process.
"""

from __future__ import annotations

from harness.core.errors import UsageError

OWN_FAULT = 1  # exit status for a command line or a program that cannot be run


class StandinError(UsageError):
    """The model would refuse this, or the stand-in cannot do it."""
