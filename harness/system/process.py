"""Run one bounded child: every byte it writes goes to a file, and nothing of it survives."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import IO, BinaryIO

from pexpect import EOF, TIMEOUT
from pexpect.fdpexpect import fdspawn

from harness.core.verdict import Word
from harness.system.call import TiedProcess
from harness.system.cancellation import raise_if_cancelled
from harness.system.quota import Excess


class Stop(Word):
    """What made a run end: its own exit, or one of our reasons to end it."""

    EXITED = "exited"
    DEADLINE = "deadline"
    STALL = "stall"  # no output, and no CPU time or too much of it
    OUTPUT_LIMIT = "output_limit"
    FAULT = "fault"  # a line after which nothing is worth waiting for


_TICK = 0.02  # seconds between looks at the console while the child lives
_ACCOUNT = 0.2  # seconds between two looks at what it has written
_MARK = 0.1  # seconds between two entries of ``times``
_READ = 65536
_READS_PER_TICK = 4  # between looks at the limits: a flood of short lines takes seconds per MiB
_DRAIN_SECONDS = 2.0  # for a pipe that a process outside our reach keeps open
_FIRST_LOOK = 0.25  # seconds after the last sign of life
_IDLE_SHARE = 0.01  # of one CPU; an idle emulator still wakes up now and then


@dataclass(frozen=True)
class Bounds:
    host_seconds: float
    stall_seconds: float
    output_bytes: int = 256 << 20
    line_bytes: int = 32 << 20  # without an end; the log parser reads no more of a line, either
    grace_seconds: float = 0.5  # from a fatal line until the child is stopped: for the rest of it


class Watch:
    """A caller's hooks while the child runs. These do nothing."""

    def __init__(self, output: Callable[[bytes], object] = lambda _data: None) -> None:
        self.output = output  # gets every byte

    def started(self, console: int) -> None:
        """``console``: the end of the child's pipe that is read here."""

    def fatal(self) -> bool:
        """Whether there was a line after which the run need not go on. Asked at every tick."""
        return False

    def busy(self) -> bool:
        """Whether another process computes for the child, so that its silence is not a stall."""
        return False

    def excess(self, processes: Iterable[int] = ()) -> Excess | None:
        """The output limit that the child has exceeded. ``processes``: its own, while it lives."""
        return None

    def spins(self, began: bool) -> bool:
        """Whether it computes in silence for so long that nothing will come of it. Asked now and
        then while it computes; ``began``: for the first time since it last said something."""
        return False

    def before_kill(self, stop: Stop) -> None:
        """The child still lives."""


@dataclass(frozen=True)
class Ended:
    """How a child ended.

    ``status`` and ``signal``: both None if the harness stopped the child, else one of them.
    ``times``: pairs (bytes so far, seconds since the start). ``complete``: False if another process
    kept the console open after the child's end. ``excess``: the output limit that it exceeded,
    however it ended.
    """

    stop: Stop
    status: int | None
    signal: int | None
    wall_seconds: float
    output_bytes: int
    times: tuple[tuple[int, float], ...]
    complete: bool
    excess: Excess | None = None


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    console: Path,
    bounds: Bounds,
    watch: Watch | None = None,
    descriptors: Sequence[int] = (),
    input: int | None = None,
) -> Ended:
    """Run ``argv`` to its end, in a session of its own; it inherits ``descriptors``. ``input``: its
    stdin, empty if None.

    OSError: the console cannot be written. KeyboardInterrupt: this process was cancelled.
    """
    watch = watch or Watch()
    raise_if_cancelled()
    started = time.monotonic()
    with (
        console.open("wb") as log,
        TiedProcess(
            argv,
            descriptors,
            input=input,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            cwd=cwd,
            env=dict(environment),
        ) as child,
    ):
        recorder = _Recorder(child.stdout, log, started, watch.output)
        try:
            watch.started(recorder.console.child_fd)
            stop, excess = _watch(child.pid, recorder, started, bounds, watch)
            if stop is not Stop.EXITED:
                watch.before_kill(stop)
        finally:
            status = child.end()
        recorder.finish()
    own_end = stop is Stop.EXITED
    return Ended(
        stop=stop,
        status=status if own_end and status >= 0 else None,
        signal=-status if own_end and status < 0 else None,
        wall_seconds=time.monotonic() - started,
        output_bytes=recorder.size,
        times=tuple(recorder.times),
        complete=recorder.complete,
        excess=excess or recorder.excess(bounds) or watch.excess(),
    )


def _watch(
    pid: int, recorder: _Recorder, started: float, bounds: Bounds, watch: Watch
) -> tuple[Stop, Excess | None]:
    """Watches the child to its end. Returns what ended it, and the excess if that was why."""
    stall = _StallWatch(pid, bounds.stall_seconds, watch)
    account, fatal_since = started + _ACCOUNT, inf
    pidfd = os.pidfd_open(pid)
    try:
        while True:
            ended = recorder.wait_for_news(pidfd)
            raise_if_cancelled()
            now = time.monotonic()
            spoke = recorder.drain()
            if spoke or watch.busy():
                stall.sign_of_life(now)
            if ended:
                return Stop.EXITED, None
            if fatal_since == inf and watch.fatal():
                fatal_since = now
            if now - fatal_since >= bounds.grace_seconds:
                return Stop.FAULT, None
            excess = recorder.excess(bounds)
            if now > account:
                account = now + _ACCOUNT
                excess = excess or watch.excess(tree_processes(pid))
            if excess is not None:
                return Stop.OUTPUT_LIMIT, excess
            if now - started > bounds.host_seconds:
                return Stop.DEADLINE, None
            if stall.expired(now):
                return Stop.STALL, None
    finally:
        os.close(pidfd)


class _Recorder:
    """Moves what the child writes into the log: stdout and stderr, in order, as bytes.

    The pipe is read only when somebody asks, so a child that floods us waits, and our memory
    stays flat. (pexpect's ``popen_spawn`` reads into a queue without bound, ``spawn`` needs a
    terminal.)
    """

    def __init__(
        self,
        pipe: IO[bytes] | None,
        log: BinaryIO,
        started: float,
        on_output: Callable[[bytes], object],
    ) -> None:
        self.console = fdspawn(pipe, maxread=_READ, use_poll=True)
        self._log = log
        self._started = started
        self._on_output = on_output
        self.size = 0
        self._line = 0  # bytes since the last end of a line
        self.times: list[tuple[int, float]] = []
        self.complete = False  # nobody writes to the console any more

    def wait_for_news(self, pidfd: int) -> bool:
        """Wait a tick, or less when there is news; True when the child has ended."""
        news = select.poll()
        news.register(pidfd, select.POLLIN)
        if not self.complete:
            news.register(self.console.child_fd, select.POLLIN)
        return any(number == pidfd for number, _ in news.poll(_TICK * 1000))

    def _read(self, seconds: float = 0) -> bytes:
        """Reads the output there is, waiting for at most ``seconds``; b"" if nothing comes."""
        try:
            return b"" if self.complete else self.console.read_nonblocking(_READ, timeout=seconds)
        except TIMEOUT:
            return b""
        except EOF:
            self.complete = True
            return b""

    def excess(self, bounds: Bounds) -> Excess | None:
        if self._line > bounds.line_bytes:
            return Excess.LINE
        return Excess.CONSOLE if self.size > bounds.output_bytes else None

    def drain(self) -> bool:
        """Everything there is now; True when there was anything."""
        before = self.size
        for _ in range(_READS_PER_TICK):
            data = self._read()
            if not data:
                break
            self._take(data)
        return self.size > before

    def finish(self) -> None:
        """The rest, after the child's end."""
        until = time.monotonic() + _DRAIN_SECONDS
        while not self.complete and (left := until - time.monotonic()) > 0:
            self._take(self._read(left))

    def _take(self, data: bytes) -> None:
        if not data:
            return
        self._log.write(data)
        self.size += len(data)
        self._line = len(data) - data.rfind(b"\n") - 1 + (0 if b"\n" in data else self._line)
        seconds = time.monotonic() - self._started
        if self.times and seconds - self.times[-1][1] < _MARK:
            self.times[-1] = (self.size, self.times[-1][1])
        else:
            self.times.append((self.size, seconds))
        self._on_output(data)


class _StallWatch:
    """Notices a child that does not write, and does not compute or does so in vain."""

    def __init__(self, pid: int, limit: float, watch: Watch) -> None:
        self._pid = pid
        self._watch = watch
        self._limit = limit
        self.sign_of_life(time.monotonic())

    def sign_of_life(self, now: float) -> None:
        self._since = now
        self._next_look = now + min(self._limit / 8, _FIRST_LOOK) if self._limit < inf else inf
        self._cpu: float | None = None

    def expired(self, now: float) -> bool:
        if now < self._next_look:
            return False
        left = self._limit - (now - self._since)
        self._next_look = now + min(self._limit / 8, max(left, _TICK))
        cpu = tree_cpu_seconds(self._pid)
        if self._cpu is None or abs(cpu - self._cpu) > _IDLE_SHARE * self._limit:
            began = self._cpu is None
            self._since = now
            self._cpu = cpu
            return self._watch.spins(began)
        # On a busy machine a process may wait for a CPU that long: that is not a stall.
        return now - self._since >= self._limit and not tree_is_ready(self._pid)


# Positions in /proc/PID/stat (proc(5)) counted after the parenthesised name, whose end is the
# last ")".
_STATE = 0
_PARENT = 1
_TIMES = slice(11, 15)  # utime, stime, and both of the children that were waited for
_READY = (b"R", b"D")  # running or waiting for a CPU; waiting for a disk


def tree_cpu_seconds(pid: int, proc: Path = Path("/proc")) -> float:
    """Seconds used so far by ``pid`` and its living and its reaped descendants."""
    ticks = sum(int(field) for _, fields in _tree(pid, proc) for field in fields[_TIMES])
    return ticks / os.sysconf("SC_CLK_TCK")


def tree_is_ready(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether one of them would go on if only it got a CPU, or its disk answered."""
    return any(fields[_STATE] in _READY for _, fields in _tree(pid, proc))


def tree_processes(pid: int, proc: Path = Path("/proc")) -> Iterator[int]:
    """``pid`` and its living descendants; /proc is read when the first is asked for."""
    return (number for number, _ in _tree(pid, proc))


def _tree(pid: int, proc: Path) -> Iterator[tuple[int, list[bytes]]]:
    found: dict[int, list[bytes]] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        with suppress(OSError, ValueError, IndexError):  # it ended while we looked
            stat = (proc / name / "stat").read_bytes()
            fields = stat[stat.rindex(b")") + 2 :].split()
            children[int(fields[_PARENT])].append(int(name))
            found[int(name)] = fields
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        if one in found:
            yield one, found[one]
        waiting.extend(children[one])
