"""One run of QEMU: passes the bytes of its UARTs on while it lives, enforces the models' limits.

QEMU has no command for the simulated time, but the board's 100 Hz counter (CLK100HZ of the FPGAIO
block, at 0x49302014 Non-secure and 0x59302014 Secure) counts in it, and the monitor can read it as
the core sees it. (Arm AN547; QEMU docs, "QEMU Machine Protocol" and "Monitor".)
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.suites.standin import StandinError
from harness.suites.standin.command_line import Model, Settings
from harness.suites.standin.host_services import HostServices
from harness.suites.standin.machine import NANOSECONDS_PER_INSTRUCTION
from harness.suites.standin.record import write_all
from harness.system.confine import ENVIRONMENT, Confinement, ending_signal

Reason = Literal["exited", "stopped", "--timelimit", "--cpulimit", "--simlimit", "--cyclelimit"]

_READ = 65536
_POLL = 0.02  # seconds between two reads of the simulated time
_COUNTERS = (0x4930_2014, 0x5930_2014)
_HERTZ = 100


Sink = Callable[[bytes], bool]  # takes what was read; True ends the simulation


@dataclass(frozen=True)
class QemuEnding:
    reason: Reason
    status: int  # of QEMU; only means something after "exited"
    wall_seconds: float
    simulated_seconds: float | None


class Pipe:
    """``write`` is QEMU's end."""

    def __init__(self, sink: Sink) -> None:
        self.read, self.write = os.pipe()
        self.sink = sink


class Channels:
    """What QEMU writes to, and the connection to its monitor if the simulated time is needed."""

    def __init__(self, console: Sink, uarts: Mapping[int, Uart], *, with_clock: bool) -> None:
        """``uarts``: by number."""
        self.console = Pipe(console)
        self.uarts = {number: Pipe(uart.write) for number, uart in uarts.items()}
        self.clock = Clock() if with_clock else None

    @property
    def pipes(self) -> Iterator[Pipe]:
        yield self.console
        yield from self.uarts.values()

    @property
    def inherited(self) -> list[int]:
        """Descriptors that QEMU gets besides its standard output."""
        clock = [] if self.clock is None else [self.clock.far_end.fileno()]
        return [*(pipe.write for pipe in self.uarts.values()), *clock]

    def close_far_ends(self) -> None:
        """Once QEMU has them: a pipe ends when the last process closes it."""
        for pipe in self.pipes:
            os.close(pipe.write)
        if self.clock is not None:
            self.clock.far_end.close()


class Clock:
    """The simulated time, from QEMU's monitor. Never blocks. QEMU inherits ``far_end``."""

    def __init__(self) -> None:
        self._near, self.far_end = socket.socketpair()
        self._near.setblocking(False)
        self._pending = 1  # answers to come; the greeting is one
        self._received = b""
        self._greeted = False
        self.seconds = 0.0  # the last value
        self.open = True

    def fileno(self) -> int:
        return self._near.fileno()

    def request(self) -> None:
        """Asks for the time, unless an answer is still to come."""
        if self._pending or not self.open:
            return
        if not self._greeted:
            self._greeted = True
            self._send("qmp_capabilities")
        for address in _COUNTERS:
            command = f"x /1wx 0x{address:x}"
            self._send("human-monitor-command", **{"command-line": command})

    def receive(self) -> None:
        """Updates ``seconds`` from the answers that have come."""
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
    channels: Channels,
    services: HostServices,
    limits: Mapping[str, float],
) -> QemuEnding:
    """``limits``: the models' options with their values, in seconds or instructions."""
    cpu = limits.get("--cpulimit")
    started = time.monotonic()
    child = subprocess.Popen(
        [*walls.prefix, *argv],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=channels.console.write,
        stderr=subprocess.STDOUT,
        pass_fds=[*walls.descriptors, *services.descriptors, *channels.inherited],
        env=ENVIRONMENT,
        preexec_fn=None if cpu is None else lambda: _limit_cpu(cpu),
    )
    channels.close_far_ends()
    for connection in services.handed_over:
        connection.close()
    reason: Reason = "stopped"
    try:
        reason = _pass_on(channels, started, limits)
    except KeyboardInterrupt:
        pass
    finally:
        if reason != "exited":
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # the walls make it lead a session
        status = child.wait()
    if reason == "exited" and cpu is not None and ending_signal(status) == signal.SIGXCPU:
        reason = "--cpulimit"
    return QemuEnding(
        reason=reason,
        status=status,
        wall_seconds=time.monotonic() - started,
        simulated_seconds=None if channels.clock is None else channels.clock.seconds,
    )


def _pass_on(channels: Channels, started: float, limits: Mapping[str, float]) -> Reason:
    """Until every pipe is at its end, a sink says stop, or a limit is exceeded."""
    sinks = {pipe.read: pipe.sink for pipe in channels.pipes}
    clock = channels.clock
    wall = limits.get("--timelimit", math.inf)
    while sinks:
        left = started + wall - time.monotonic()
        if left <= 0:
            return "--timelimit"
        if clock is not None and (exceeded := _simulated_limit(clock, limits)) is not None:
            return exceeded
        wait = min(left, math.inf if clock is None else _POLL)
        listened = [*sinks, *([clock.fileno()] if clock is not None and clock.open else [])]
        ready = select.select(listened, [], [], None if wait == math.inf else wait)[0]
        for descriptor in ready:
            if descriptor not in sinks:
                continue
            data = os.read(descriptor, _READ)
            if not data:
                os.close(descriptor)
                del sinks[descriptor]
            elif sinks[descriptor](data):
                return "stopped"
    return "exited"


def _simulated_limit(clock: Clock, limits: Mapping[str, float]) -> Reason | None:
    clock.receive()
    clock.request()
    if clock.seconds >= limits.get("--simlimit", math.inf):
        return "--simlimit"
    cycles = clock.seconds * 1e9 / NANOSECONDS_PER_INSTRUCTION
    return "--cyclelimit" if cycles >= limits.get("--cyclelimit", math.inf) else None


def _limit_cpu(seconds: float) -> None:
    whole = max(1, math.ceil(seconds))
    resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 5))


UARTS = 5  # of the machine; the models have as many on the board
_EOT = b"\x04"


class Uart:
    """Passes bytes on until one of the stop texts has passed."""

    def __init__(
        self, number: int, out_file: str, stops: Sequence[bytes], stdout: Callable[[bytes], object]
    ) -> None:
        """Raises StandinError when ``out_file`` cannot be written."""
        self._stops = stops
        self._kept = max(map(len, stops), default=1) - 1
        self._tail = b""
        self._file: int | None = None
        self._stdout = stdout if out_file in ("-", "/dev/stdout") else None
        if out_file and self._stdout is None:
            try:
                self._file = os.open(out_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            except OSError as error:
                raise StandinError(
                    f"uart{number}.out_file: cannot write {out_file}: {error.strerror}"
                ) from error

    def write(self, data: bytes) -> bool:
        """Returns whether a stop text is complete, perhaps with bytes of earlier calls: the
        simulation ends, and what comes after the text is dropped."""
        seen = self._tail + data
        ends = [start + len(s) for s in self._stops if (start := seen.find(s)) >= 0]
        if ends:
            data = data[: max(0, min(ends) - len(self._tail))]
        self._tail = seen[-self._kept :] if self._kept else b""
        if self._stdout is not None:
            self._stdout(data)
        elif self._file is not None:
            write_all(self._file, data)
        return bool(ends)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def uarts_of(
    model: Model, settings: Settings, stdout: Callable[[bytes], object]
) -> dict[int, Uart]:
    """The UARTs that have a parameter set, by number. Raises StandinError."""
    found = {}
    for number in range(UARTS):
        name = f"{model.board}.uart{number}"
        tag = settings.text(f"{name}.shutdown_tag").encode()
        eot = [_EOT] if settings.flag(f"{name}.shutdown_on_eot") else []
        out_file = settings.text(f"{name}.out_file")
        if out_file or tag or eot:
            found[number] = Uart(number, out_file, [*eot, *([tag] if tag else [])], stdout)
    return found
