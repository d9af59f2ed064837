"""Keeps what torch and ExecuTorch print away from the user's terminal.

Python streams, warnings and the file descriptors 1 and 2 (C++ writes there) go to a log.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class Log:
    """What was printed while captured, readable at any time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def text(self) -> str:
        size = os.fstat(self._descriptor).st_size
        return os.pread(self._descriptor, size, 0).decode(errors="replace")

    def tail(self, lines: int = 20) -> str:
        return "\n".join(self.text().splitlines()[-lines:])


@contextmanager
def captured() -> Iterator[Log]:
    import tempfile  # a warm run imports this module and captures nothing

    with tempfile.TemporaryFile() as file, _redirected(file.fileno()):
        yield Log(file.fileno())


@contextmanager
def _redirected(log: int) -> Iterator[None]:
    streams = sys.stdout, sys.stderr
    for stream in streams:
        stream.flush()
    _flush_c_streams()
    kept = os.dup(1), os.dup(2)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # Logging handlers that libraries create meanwhile keep these streams; they follow the
    # descriptor, so they stay valid (and reach the real one) after the capture ends.
    sys.stdout, sys.stderr = _stream(1), _stream(2)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            yield
    finally:
        _flush_c_streams()  # into the log: where this is no terminal, a printf still waits in libc
        sys.stdout, sys.stderr = streams
        for descriptor, saved in enumerate(kept, start=1):
            os.dup2(saved, descriptor)
            os.close(saved)


def _flush_c_streams() -> None:
    """All of libc's in this process, which are not Python's (C11, 7.21.5.2: fflush of NULL)."""
    import ctypes  # a warm run exports nothing

    ctypes.CDLL(None).fflush(None)


def _stream(descriptor: int) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="replace", write_through=True)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))
