"""The class of this machine's CPU: who made it and what it can, as Linux tells it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_TELLING = ("vendor_id", "flags", "CPU implementer", "Features")  # x86, and the Arm ones


def processor() -> Iterator[str]:
    """Lines that are equal on machines whose compilers and libraries choose the same instructions;
    a cache may be shared by several machines."""
    yield os.uname().machine
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    yield from sorted({line for line in lines if line.startswith(_TELLING)})
