"""Writes the harness's own lines into the guest's console stream.

QEMU writes the console to a pipe that the transcript reader owns. While the guest is stopped in the
gdb stub, everything it printed is already in that pipe, so a line written now appears in order.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Event

CONNECT_TIMEOUT_S = 10.0  # the pipe exists before QEMU starts the guest; this only bounds a bug


class ConsoleInjector:
    """Thread-safe. ``connect`` is called once, when the transcript reader has opened the pipe."""

    def __init__(self) -> None:
        self._connected = Event()
        self._read_end = -1

    def connect(self, read_end: int) -> None:
        self._read_end = os.dup(read_end)
        self._connected.set()

    def write_line(self, text: str) -> None:
        """Appends ``text`` and a newline. Dropped if the pipe is full or the reader has gone."""
        if not self._connected.wait(CONNECT_TIMEOUT_S):
            return
        # Opened for each line and closed at once: end-of-file must come from QEMU alone.
        with suppress(BlockingIOError):
            pipe = os.open(f"/proc/self/fd/{self._read_end}", os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(pipe, f"{text}\n".encode())
            finally:
                os.close(pipe)

    def close(self) -> None:
        if self._read_end >= 0:
            os.close(self._read_end)
            self._read_end = -1
