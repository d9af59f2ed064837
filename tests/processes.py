"""What tests ask of processes that the harness ended."""

from __future__ import annotations

import os
import select


def ends(pid: int, seconds: float = 20) -> bool:
    """Whether the process is dead by then: on a busy machine dying takes a while after the kill."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], seconds)[0])
    finally:
        os.close(process)
