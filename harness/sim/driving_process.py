"""A process of the harness that drives a simulator or a board, and what it reports.

Its console is the guest's, which may write anything there. So it reports on a pipe of its own
whether the guest has begun, how the runner ended, and why it ended the run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from harness.sim.guest.console import MESSAGE_PREFIX, GuestProblem
from harness.sim.simulator import Companion
from harness.system import paths

_MOST_REPORT = 65536  # bytes: a pipe holds no more
BEGAN = "began"  # the first line of a report: the guest runs the program
STATUS = "status "  # and the runner's exit status


class Report(Companion):
    """The reading end, in the harness."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self.descriptors, self.words = (self._writer,), (str(self._writer),)
        self.began = False

    def started(self, read_end: int) -> None:
        os.close(self._writer)
        self._writer = -1

    def close(self) -> None:
        """Call it when the process has ended. Its children may live on and keep the pipe open."""
        if self._writer >= 0:
            os.close(self._writer)
        os.set_blocking(self._reader, False)
        with open(self._reader, "rb", buffering=0) as report:
            lines = (report.read(_MOST_REPORT) or b"").decode("utf-8", "replace").splitlines()
        self.began = BEGAN in lines
        words = (line.removeprefix(STATUS) for line in lines if line.startswith(STATUS))
        self.status = next(map(int, words), None)
        others = (line for line in lines if line != BEGAN and not line.startswith(STATUS))
        self.problem = next(others, None)


class Reporter:
    """The writing end, in the process. ``descriptor``: of the pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __call__(self, line: str) -> None:
        os.write(self._descriptor, f"{line}\n".encode())

    def problem(self, line: str) -> None:
        """Report it, and print it on the console."""
        self(line)
        record(f"\n{line}\n".encode())


def driven(action: Callable[[], int], report: Reporter) -> int:
    """Return the status that ``action`` returns; report why it failed."""
    try:
        return action()
    except GuestProblem as problem:
        line = str(problem)
    except Exception as error:  # a boundary: whatever it is, the program did not do it
        text = f"{type(error).__name__}: {error}".replace("\n", " ")
        line = f"the board cannot be driven: {text}"
    report.problem(f"{MESSAGE_PREFIX}{line}")
    return 1


def record(data: bytes) -> None:
    """Write to the console of the run."""
    while data:
        data = data[os.write(1, data) :]


def own_files() -> tuple[Path, ...]:
    """Return what a process of the harness reads: Python, and the harness."""
    base = () if sys.base_prefix == "/usr" else (Path(sys.base_prefix),)
    return (Path(sys.prefix), *base, paths.import_root() / "harness", paths.data_root() / "targets")
