"""Lines of ours among those that QEMU writes to a pipe."""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Event

_PATIENCE = 10.0  # seconds for the pipe to be known, which it is before QEMU is at work


class Aside:
    """They are in their order: while the program is stopped, all that it has said is in the pipe.

    ``attach`` is given the end of the pipe that is read; until then, whoever writes waits.
    """

    def __init__(self) -> None:
        self._known = Event()
        self._pipe = -1

    def attach(self, read_end: int) -> None:
        self._pipe = os.dup(read_end)
        self._known.set()

    def __call__(self, text: str) -> None:
        if not self._known.wait(_PATIENCE):
            return
        # A second way into the pipe, and closed at once, so that its end is QEMU's to make.
        with suppress(BlockingIOError):  # nobody reads any more
            way_in = os.open(f"/proc/self/fd/{self._pipe}", os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(way_in, f"{text}\n".encode())
            finally:
                os.close(way_in)

    def close(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
