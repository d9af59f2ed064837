"""One run of QEMU: its bytes passed on while it lives, its simulated time, and the reason it ended.

QEMU has no command for the time, but the board's 100 Hz counter (CLK100HZ of the FPGAIO block, at
0x49302014 Non-secure and 0x59302014 Secure) counts in it, and the monitor can read it as the
core sees it. (Arm AN547; QEMU docs, "QEMU Machine Protocol" and "Monitor".)
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.standin.attachment import Attachment
from harness.standin.machine import NANOSECONDS_PER_INSTRUCTION
from harness.standin.uart import Uart
from harness.system.confine import ENVIRONMENT, Confinement, ending_signal

Reason = Literal["exited", "stopped", "--timelimit", "--cpulimit", "--simlimit", "--cyclelimit"]

_READ = 65536
_LOOK = 0.02  # seconds between two looks at the simulated time
_COUNTERS = (0x4930_2014, 0x5930_2014)
_HERTZ = 100


@dataclass(frozen=True)
class QemuEnding:
    reason: Reason
    status: int  # of QEMU; only means something after "exited"
    wall_seconds: float
    simulated_seconds: float | None


@dataclass(frozen=True)
class Streams:
    """Pairs of pipe ends: ours to read, QEMU's to write."""

    console: tuple[int, int]
    uarts: Mapping[int, tuple[int, int]]  # by number of the UART


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


def run(
    walls: Confinement,
    argv: Sequence[str],
    cwd: Path,
    streams: Streams,
    console: Callable[[bytes], bool],
    uarts: Mapping[int, Uart],
    limits: Mapping[str, float],
    clock: Clock | None,
    beside: Attachment,
) -> QemuEnding:
    """Behind ``walls`` it leads a session of its own. The limits are the model's, by option."""
    inherited = [
        *walls.descriptors,
        *beside.descriptors,
        *(write for _, write in streams.uarts.values()),
    ]
    if clock is not None:
        inherited.append(clock.far_end.fileno())
    cpu = limits.get("--cpulimit")
    started = time.monotonic()
    child = subprocess.Popen(
        [*walls.prefix, *argv],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=streams.console[1],
        stderr=subprocess.STDOUT,
        pass_fds=inherited,
        env=ENVIRONMENT,
        preexec_fn=None if cpu is None else lambda: _limit_cpu(cpu),
    )
    for write in (streams.console[1], *(write for _, write in streams.uarts.values())):
        os.close(write)
    for far_end in (*beside.handed_over, *([clock.far_end] if clock is not None else [])):
        far_end.close()
    takers: dict[int, Callable[[bytes], bool]] = {
        streams.console[0]: console,
        **{read: uarts[number].take for number, (read, _) in streams.uarts.items()},
    }
    reason: Reason = "stopped"
    try:
        reason = _pump(takers, started, limits, clock)
    except KeyboardInterrupt:
        pass
    finally:
        if reason != "exited":
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        status = child.wait()
    if reason == "exited" and cpu is not None and ending_signal(status) == signal.SIGXCPU:
        reason = "--cpulimit"
    return QemuEnding(
        reason=reason,
        status=status,
        wall_seconds=time.monotonic() - started,
        simulated_seconds=None if clock is None else clock.seconds,
    )


def _pump(
    takers: dict[int, Callable[[bytes], bool]],
    started: float,
    limits: Mapping[str, float],
    clock: Clock | None,
) -> Reason:
    """Until every pipe is at its end, a UART says stop, or a limit is over."""
    wall = limits.get("--timelimit", math.inf)
    while takers:
        left = started + wall - time.monotonic()
        if left <= 0:
            return "--timelimit"
        if clock is not None and (over := _simulated_limit(clock, limits)) is not None:
            return over
        wait = min(left, math.inf if clock is None else _LOOK)
        listened = [*takers, *([clock.fileno()] if clock is not None and clock.open else [])]
        ready = select.select(listened, [], [], None if wait == math.inf else wait)[0]
        for descriptor in ready:
            if descriptor not in takers:
                continue
            data = os.read(descriptor, _READ)
            if not data:
                os.close(descriptor)
                del takers[descriptor]
            elif takers[descriptor](data):
                return "stopped"
    return "exited"


def _simulated_limit(clock: Clock, limits: Mapping[str, float]) -> Reason | None:
    clock.take()
    clock.ask()
    if clock.seconds >= limits.get("--simlimit", math.inf):
        return "--simlimit"
    cycles = clock.seconds * 1e9 / NANOSECONDS_PER_INSTRUCTION
    return "--cyclelimit" if cycles >= limits.get("--cyclelimit", math.inf) else None


def _limit_cpu(seconds: float) -> None:
    whole = max(1, math.ceil(seconds))
    resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 5))
