"""Simulated time, read while QEMU runs.

QEMU has no command for it, but the board's 100 Hz counter (CLK100HZ of the FPGAIO block, at
0x49302014 Non-secure and 0x59302014 Secure) counts in it, and the monitor can read it as the
core sees it. (Arm AN547; QEMU docs, "QEMU Machine Protocol" and "Monitor".)
"""

from __future__ import annotations

import json
import re
import socket
from typing import Any

_COUNTERS = (0x4930_2014, 0x5930_2014)
_HERTZ = 100


class Clock:
    """One connection to QEMU's monitor; ``far_end`` is inherited by QEMU. It never waits."""

    def __init__(self) -> None:
        self._near, self.far_end = socket.socketpair()
        self._near.setblocking(False)
        self._pending = 1  # answers to come; the greeting is one
        self._received = b""
        self._greeted = False
        self.seconds = 0.0  # what was read last
        self.open = True

    def fileno(self) -> int:
        return self._near.fileno()

    def ask(self) -> None:
        """Ask for the time, unless an answer is still to come."""
        if self._pending or not self.open:
            return
        if not self._greeted:
            self._greeted = True
            self._send("qmp_capabilities")
        for address in _COUNTERS:
            command = f"x /1wx 0x{address:x}"
            self._send("human-monitor-command", **{"command-line": command})

    def take(self) -> None:
        """Read what there is to read."""
        try:
            data = self._near.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.open = False
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            self._answer(json.loads(line))

    def close(self) -> None:
        self.far_end.close()
        self._near.close()

    def _answer(self, message: dict[str, Any]) -> None:
        if "event" in message:
            return
        self._pending -= 1
        if value := re.search(r": 0x([0-9a-f]+)", str(message.get("return", ""))):
            self.seconds = max(self.seconds, int(value[1], 16) / _HERTZ)

    def _send(self, command: str, **arguments: str) -> None:
        try:
            self._near.send(json.dumps({"execute": command, "arguments": arguments}).encode())
        except OSError:
            self.open = False
        self._pending += 1
