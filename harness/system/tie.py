"""A forked process that ends when its parent does (prctl(2), PR_SET_PDEATHSIG)."""

from __future__ import annotations

import os
import signal
from functools import cache
from typing import Any

_PR_SET_PDEATHSIG = 1


@cache
def prepare() -> Any:
    """The C library; to be called before a fork, for it takes long."""
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def tie_to(parent: int) -> None:
    """In the fork: SIGKILL when the thread that forked ends, or if its process is gone already."""
    failed = prepare().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if failed or os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
