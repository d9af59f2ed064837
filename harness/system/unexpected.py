"""Turns an unexpected exception into a HarnessError: one sentence, one exit code.

Every front end (``hil``, the pytest plugin, a stand-in, a worker) uses this, so that memory that
ran out, a disk that cannot be written and a defect of the harness look the same everywhere. ``hil
--debug`` shows the traceback; pytest and a stand-in show it for a defect.
"""

from __future__ import annotations

import errno
import traceback
from pathlib import Path

from harness.core.errors import HarnessError, InfraError, UsageError
from harness.system.files import DiskError, disk_full
from harness.system.paths import import_root

# threading.Thread.start; the dynamic linker's dlopen(3), in an ImportError
_EXHAUSTED = ("can't start new thread", "failed to map segment", "Cannot allocate memory")


class Unforeseen(InfraError):
    """An exception of Python or a library. ``cause``: its name, ``detail``: its text, ``place``:
    the innermost line of the harness, "harness/run/record.py:12"."""

    kind = "unforeseen"

    def __init__(self, error: BaseException) -> None:
        self.cause = type(error).__name__
        self.detail = next(iter(str(error).splitlines()), "")
        self.place = place_of(error)
        said = f"{self.cause}: {self.detail}" if self.detail else self.cause
        super().__init__(
            f"unforeseen {said} (at {self.place})",
            hint="this is a defect of the harness; `hil --debug` shows the traceback, "
            "which a report of it should have",
        )


def as_harness_error(error: BaseException) -> HarnessError:
    """The exception as an error of the harness. A HarnessError is returned unchanged."""
    if isinstance(error, HarnessError):
        return error
    if _exhausted(error):
        return InfraError(
            "the machine, or a limit set for this process, gave no more memory",
            hint="see `ulimit -v` and `free -m`; fewer cases or workers at a time need less",
            kind="out_of_memory",
            place=place_of(error),
        )
    if isinstance(error, OSError) and error.errno == errno.EFBIG and error.filename:
        return UsageError(f"cannot read {error.filename}: {error.strerror}", path=error.filename)
    named = error if isinstance(error, OSError) and error.filename is not None else None
    if disk := named or disk_full(error):
        return DiskError("reading or writing a file", disk)
    return Unforeseen(error)


def _exhausted(error: BaseException | None) -> bool:
    """Python, a thread that is started and a library that is loaded report it differently."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        if isinstance(error, OSError) and error.errno in (errno.ENOMEM, errno.EAGAIN):
            return True
        if any(said in str(error) for said in _EXHAUSTED):
            return True
        error = error.__cause__ or error.__context__
    return False


def place_of(error: BaseException) -> str:
    """The innermost line of the harness in a traceback; "" when there is none."""
    root = import_root()
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if file.is_relative_to(root / "harness"):
            return f"{file.relative_to(root)}:{frame.lineno}"
    return ""


def traceback_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))
