"""Run one bounded child: every byte it writes goes to a file, and nothing of it survives."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pexpect import EOF, TIMEOUT
from pexpect.popen_spawn import PopenSpawn

from harness.errors import Word
from harness.system.cputime import tree_cpu_seconds, tree_is_ready


class Stop(Word):
    """What made a run end: its own exit, or one of our reasons to end it."""

    EXITED = "exited"
    DEADLINE = "deadline"
    STALL = "stall"  # no output and no CPU time
    OUTPUT_LIMIT = "output_limit"
    FAULT = "fault"  # a line after which nothing is worth waiting for


_TICK = 0.02  # seconds between looks at the console while the child lives
_MARK = 0.1  # seconds between two entries of ``times``
_READ = 65536
_READS_PER_TICK = 64
_DRAIN_SECONDS = 2.0  # for a pipe that a process outside our reach keeps open
_QUEUED = 4096
_FIRST_LOOK = 0.25  # seconds after the last sign of life
_IDLE_SHARE = 0.01  # of one CPU; an idle emulator still wakes up now and then


@dataclass(frozen=True)
class Bounds:
    host_seconds: float
    stall_seconds: float
    output_bytes: int = 256 << 20
    grace_seconds: float = 0.5  # from a fatal line until the child is stopped
    quiet_seconds: float = 0.2  # earlier, when the child says nothing for so long


@dataclass(frozen=True)
class Watch:
    """What a caller wants to do while the child runs.

    ``output`` gets every byte. ``fatal`` answers whether a line was among them after which the
    run need not go on. ``before_kill`` is called with the reason while the child still lives.
    ``busy``: somebody computes for the child, which is not idle then, however still it is.
    """

    output: Callable[[bytes], None] | None = None
    fatal: Callable[[], bool] | None = None
    before_kill: Callable[[Stop], None] | None = None
    busy: Callable[[], bool] | None = None


@dataclass(frozen=True)
class Ended:
    """How a child ended.

    ``status`` and ``signal`` are None when we stopped it, and one of them is None always.
    ``times`` are pairs (bytes so far, seconds since the
    start). ``complete`` is False when somebody kept the console open after the child's end.
    """

    stop: Stop
    status: int | None
    signal: int | None
    wall_seconds: float
    output_bytes: int
    times: tuple[tuple[int, float], ...]
    complete: bool


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    console: Path,
    bounds: Bounds,
    on_output: Callable[[bytes], None] | None = None,
    watch: Watch | None = None,
) -> Ended:
    """Run ``argv``, which must lead a session of its own (``setsid`` in front), to its end.

    OSError: the program cannot be started, or the console cannot be written.
    """
    watch = watch or Watch(on_output)
    with console.open("wb") as log:
        started = time.monotonic()
        # ``env`` of the child exactly; stdin is closed at once.
        child = PopenSpawn(list(argv), cwd=str(cwd), env=dict(environment), maxread=_READ)
        # Its thread reads pieces of 1 KiB into a queue without bound. With one, a child that
        # floods us waits on its pipe, and our memory stays flat.
        child._read_queue.maxsize = _QUEUED
        try:
            child.sendeof()
            recorder = _Recorder(child, log, started, watch.output)
            stop = _watch(child, recorder, started, bounds, watch)
            if stop is not Stop.EXITED and watch.before_kill is not None:
                watch.before_kill(stop)
        finally:
            _kill(child)
        recorder.finish()
    own_end = stop is Stop.EXITED
    return Ended(
        stop=stop,
        status=child.exitstatus if own_end else None,
        signal=child.signalstatus if own_end else None,
        wall_seconds=time.monotonic() - started,
        output_bytes=recorder.size,
        times=tuple(recorder.times),
        complete=recorder.complete,
    )


def _watch(
    child: PopenSpawn, recorder: _Recorder, started: float, bounds: Bounds, watch: Watch
) -> Stop:
    stall = _StallWatch(child.pid, bounds.stall_seconds)
    grace = _Grace(bounds, watch)
    pidfd = os.pidfd_open(child.pid)
    try:
        while True:
            ended = bool(select.select([pidfd], [], [], _TICK)[0])
            now = time.monotonic()
            spoke = recorder.drain()
            if spoke or (watch.busy is not None and watch.busy()):
                stall.sign_of_life(now)
            if ended:
                return Stop.EXITED
            if grace.over(now, spoke):
                return Stop.FAULT
            if recorder.size > bounds.output_bytes:
                return Stop.OUTPUT_LIMIT
            if now - started > bounds.host_seconds:
                return Stop.DEADLINE
            if stall.expired(now):
                return Stop.STALL
    finally:
        os.close(pidfd)


def _kill(child: PopenSpawn) -> None:
    """The child and its whole group. It is not reaped yet, so its number is still its own."""
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            kill(child.pid, signal.SIGKILL)
    child.wait()


class _Recorder:
    """Moves what the child wrote into the log."""

    def __init__(
        self,
        child: PopenSpawn,
        log: BinaryIO,
        started: float,
        on_output: Callable[[bytes], None] | None,
    ) -> None:
        self._child = child
        self._log = log
        self._started = started
        self._on_output = on_output
        self.size = 0
        self.times: list[tuple[int, float]] = []
        self.complete = False

    def drain(self) -> bool:
        """Everything there is now; True when there was anything."""
        before = self.size
        with suppress(EOF):
            for _ in range(_READS_PER_TICK):
                data = self._child.read_nonblocking(_READ, timeout=_DRAIN_SECONDS)
                if not data:
                    break
                self._take(data)
        return self.size > before

    def finish(self) -> None:
        """The rest, after the child's end."""
        while self.drain():
            pass
        self.complete = self._child.expect([EOF, TIMEOUT], timeout=_DRAIN_SECONDS) == 0
        self._take(self._child.before)
        if self.complete:
            self._child.proc.stdout.close()

    def _take(self, data: bytes) -> None:
        if not data:
            return
        self._log.write(data)
        self.size += len(data)
        seconds = time.monotonic() - self._started
        if self.times and seconds - self.times[-1][1] < _MARK:
            self.times[-1] = (self.size, self.times[-1][1])
        else:
            self.times.append((self.size, seconds))
        if self._on_output is not None:
            self._on_output(data)


class _Grace:
    """The time from a fatal line to the end: for the rest of the output, and no longer."""

    def __init__(self, bounds: Bounds, watch: Watch) -> None:
        self._bounds = bounds
        self._fatal = watch.fatal
        self._since: float | None = None
        self._quiet_since = 0.0

    def over(self, now: float, spoke: bool) -> bool:
        if self._fatal is None:
            return False
        if spoke:
            self._quiet_since = now
            if self._since is None and self._fatal():
                self._since = now
        if self._since is None:
            return False
        return (
            now - self._since > self._bounds.grace_seconds
            or now - self._quiet_since > self._bounds.quiet_seconds
        )


class _StallWatch:
    """Notices a child that neither writes nor computes."""

    def __init__(self, pid: int, limit: float) -> None:
        self._pid = pid
        self._limit = limit
        self.sign_of_life(time.monotonic())

    def sign_of_life(self, now: float) -> None:
        self._since = now
        self._next_look = now + min(self._limit / 8, _FIRST_LOOK)
        self._cpu: float | None = None

    def expired(self, now: float) -> bool:
        if now < self._next_look:
            return False
        left = self._limit - (now - self._since)
        self._next_look = now + min(self._limit / 8, max(left, _TICK))
        cpu = tree_cpu_seconds(self._pid)
        if self._cpu is None or abs(cpu - self._cpu) > _IDLE_SHARE * self._limit:
            self._since = now
            self._cpu = cpu
            return False
        # On a busy machine a process may wait for a CPU that long: that is not a stall.
        return now - self._since >= self._limit and not tree_is_ready(self._pid)
