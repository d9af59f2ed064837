"""Ctrl-C and SIGTERM: one cancellation that every thread with a child watches.

Python raises KeyboardInterrupt in the main thread alone, which then waits for its pools. The flag
here ends what the other threads run (``process.run``), and a timer ends this process if anything
else goes on; ``TiedProcess`` then ends its children.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from harness.core.verdict import ExitCode

_GRACE_S = 1.2  # for what is unwound; a user waits at most 2 s, on a busy machine too
_CANCELLED = threading.Event()  # of the process, as signals are
_ENDING = threading.Lock()


def is_cancelled() -> bool:
    return _CANCELLED.is_set()


def raise_if_cancelled() -> None:
    """Raises KeyboardInterrupt, in any thread."""
    if is_cancelled():
        raise KeyboardInterrupt


@contextmanager
def signals_cancel() -> Iterator[None]:
    """In the main thread: the first SIGINT or SIGTERM cancels, a second one ends the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _cancel) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        if not _CANCELLED.is_set():
            for number, handler in before.items():
                signal.signal(number, handler)


def _cancel(_number: int, _frame: FrameType | None) -> None:
    if _CANCELLED.is_set():
        os._exit(ExitCode.INTERRUPTED)
    _CANCELLED.set()
    timer = threading.Timer(_GRACE_S, end_process)
    timer.daemon = True
    timer.start()
    raise KeyboardInterrupt


def end_process() -> NoReturn:
    """Ends a cancelled process at once: on a busy machine Python would take seconds to end its
    threads and free its objects."""
    with suppress(OSError):
        if threading.current_thread() is threading.main_thread():
            sys.stdout.flush()
    _ENDING.acquire()  # one line, whoever is first
    with suppress(OSError):
        os.write(2, b"hil: interrupted\n")
    os._exit(ExitCode.INTERRUPTED)


@contextmanager
def cancelling(pool: Executor) -> Iterator[None]:
    """Inside the block of ``pool``: when it is interrupted, nothing queued begins any more, and
    what runs is ended."""
    try:
        yield
    except KeyboardInterrupt:
        ours = not _CANCELLED.is_set()  # pytest's handler of signals
        _CANCELLED.set()
        pool.shutdown(wait=True, cancel_futures=True)
        if ours:
            _CANCELLED.clear()
        raise
