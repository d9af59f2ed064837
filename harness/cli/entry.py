"""The start and the end of the process that is ``hil``.

Taking an interpreter apart takes as long as a fifth of a warm run, and gives back nothing that the
end of a process does not. So what has to happen at an end happens, and then the process ends.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading

_COLLECT_AT = 50_000  # objects; importing makes many, and none of them is garbage


def entry() -> None:
    """``hil``, as a process of its own."""
    gc.set_threshold(_COLLECT_AT, 10, 10)
    from harness.cli.main import main

    try:
        main()
    except SystemExit as end:
        _end(end.code)
        raise


def _end(code: object) -> None:
    """Returns where Python itself has to: somebody else still runs, looks on, or has to be told."""
    status = 0 if code is None else code
    if not isinstance(status, int) or threading.active_count() > 1 or _watched():
        return
    atexit._run_exitfuncs()  # once: Python finds none left
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return
    os._exit(status & 0xFF)


def _watched() -> bool:
    """By a debugger, a profiler or a measure of coverage, which write at the end."""
    return sys.gettrace() is not None or sys.getprofile() is not None
