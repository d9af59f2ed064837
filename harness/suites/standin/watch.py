"""Watches one run of QEMU: its UARTs, and the models' stop texts and limits.

QEMU has no command for the simulated time, but the board's 100 Hz counter (CLK100HZ of the FPGAIO
block, at 0x49302014 Non-secure and 0x59302014 Secure) counts in it, and the monitor can read it as
the core sees it. (Arm AN547; QEMU docs, "QEMU Monitor".)
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Thread
from time import monotonic

from harness.sim.monitor import Monitor, cpu_state, words_of
from harness.sim.simulator import Companion, Launch
from harness.sim.simulator_process import GuestWatch
from harness.suites.standin.command_line import FvpParameters, Model
from harness.suites.standin.machine import NANOSECONDS_PER_INSTRUCTION
from harness.suites.standin.record import write_all

_UARTS = 5  # of the machine; the models have as many on the board
_EOT = b"\x04"
_READ = 65536
_COUNTERS = (0x4930_2014, 0x5930_2014)
_HERTZ = 100
_SIMULATED = ("--simlimit", "--cyclelimit")
_LOOK_SECONDS = 1.0  # of wall time
_BRANCH_TO_ITSELF = (b"\xfe\xe7", b"\xff\xf7\xfe\xbf")  # B ., narrow and wide
_TICKINT = 2
_EXIT = "_exit"  # of a C library: Zephyr's loops there with the timer on, and prints "exit"
_LOOKS, _LOOKS_IN_EXIT = 2, 5

Sink = Callable[[bytes], object]


class Uart(Companion):
    """Forwards what QEMU writes to it, up to and including the first stop text."""

    def __init__(self, number: int, sink: Sink, stops: Sequence[bytes]) -> None:
        self._sink = sink
        self._stops = stops
        self._kept = max(map(len, stops), default=1) - 1
        self._tail = b""
        self._error: OSError | None = None
        self._read, self._write = os.pipe()
        self._thread = Thread(target=self._pass_on, name=f"uart{number}", daemon=True)
        self.stopped = False
        self.descriptors = (self._write,)
        # QEMU truncates a chardev's file unless it appends, and a pipe cannot be truncated.
        self.words = (
            *("-add-fd", f"fd={self._write},set={number}"),
            *("-chardev", f"file,id=uart{number},path=/dev/fdset/{number},append=on"),
            *("-serial", f"chardev:uart{number}"),
        )

    def started(self, read_end: int) -> None:
        os.close(self._write)
        self._thread.start()

    def close(self) -> None:
        """Call it when QEMU has ended or did not start. Raises OSError when the sink failed."""
        if self._thread.is_alive():
            self._thread.join()
        elif self._thread.ident is None:
            os.close(self._write)
        os.close(self._read)
        if self._error is not None:
            raise self._error

    def _pass_on(self) -> None:
        try:
            while data := os.read(self._read, _READ):
                self._take(data)
        except OSError as error:
            self._error = error
            self.stopped = True

    def _take(self, data: bytes) -> None:
        """Forwards ``data``. A stop text may have begun in earlier calls; bytes after it are
        dropped."""
        if self.stopped:
            return
        text = self._tail + data
        ends = [start + len(s) for s in self._stops if (start := text.find(s)) >= 0]
        if ends:
            data = data[: max(0, min(ends) - len(self._tail))]
        self._tail = text[-self._kept :] if self._kept else b""
        self._sink(data)
        self.stopped = bool(ends)


class _NoUart(Companion):
    words = ("-serial", "none")


@contextmanager
def uarts_of(
    model: Model, settings: FvpParameters, stdout: Sink
) -> Iterator[tuple[Companion, ...]]:
    """The machine's UARTs, by number, while the block runs. Raises OSError."""
    uarts: list[Companion] = []
    with ExitStack() as stack:
        for number in range(_UARTS):
            name = f"{model.board}.uart{number}"
            out_file = settings.text(f"{name}.out_file")
            tag = settings.text(f"{name}.shutdown_tag").encode()
            eot = _EOT if settings.flag(f"{name}.shutdown_on_eot") else b""
            stops = [stop for stop in (eot, tag) if stop]
            if not (out_file or stops):
                uarts.append(_NoUart())
                continue
            sink = stdout
            if out_file not in ("-", "/dev/stdout"):
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                file = os.open(out_file or os.devnull, flags, 0o644)
                stack.callback(os.close, file)
                sink = partial(write_all, file)
            uart = Uart(number, sink, stops)
            stack.callback(uart.close)
            uarts.append(uart)
        yield tuple(uarts)


class ModelWatch(GuestWatch):
    """Ends the simulation at a UART's stop text, at a limit of simulated time, or when the program
    can never go on, at which a model would stand until a limit.

    ``limits``: the models' options with their values, in seconds or instructions. ``timed``:
    whether simulated time is asked for, also without a limit of it.
    ``function_at``: the name of the function at an address.
    ``exceeded``: the limit that ended it. ``simulated_seconds``: at the last poll, if asked for.
    ``halted``: the address of the branch to itself that the core never leaves.
    """

    def __init__(
        self,
        launch: Launch,
        companions: Sequence[Companion],
        console: Sink,
        limits: Mapping[str, float],
        *,
        timed: bool,
        function_at: Callable[[int], str],
    ) -> None:
        super().__init__(launch, companions, console)
        self._limits = limits
        self._function_at = function_at
        self._may_stand = not set(_SIMULATED) & set(limits)  # these end it soon, at their time
        self._timed = timed or not self._may_stand
        self._stood_at: int | None = None
        self._looks = 0  # in a row at which it stood there
        self._next_look = monotonic() + _LOOK_SECONDS
        self.halted: int | None = None
        self.exceeded: str | None = None
        self.simulated_seconds = 0.0

    def fatal(self) -> bool:
        if any(isinstance(uart, Uart) and uart.stopped for uart in self.companions):
            return True
        if self.monitor is not None and self._may_stand and monotonic() > self._next_look:
            self._next_look = monotonic() + _LOOK_SECONDS
            before, self._stood_at = self._stood_at, self._stands_at(self.monitor)
            self._looks = self._looks + 1 if before == self._stood_at else 1
            place = self._stood_at
            if place is not None and self._looks >= self._enough_looks(self.monitor, place):
                self.halted, self.exceeded = place, "--timelimit"
        if self.monitor is not None and self._timed and self.exceeded is None:
            for address in _COUNTERS:
                for ticks in words_of(self.monitor.ask(f"x /1wx 0x{address:x}")):
                    self.simulated_seconds = max(self.simulated_seconds, ticks / _HERTZ)
            cycles = self.simulated_seconds * 1e9 / NANOSECONDS_PER_INSTRUCTION
            for limit, value in zip(_SIMULATED, (self.simulated_seconds, cycles), strict=True):
                if value >= self._limits.get(limit, math.inf):
                    self.exceeded = self.exceeded or limit
        return self.exceeded is not None

    @staticmethod
    def _stands_at(monitor: Monitor) -> int | None:
        """The core's place, if it is a branch to itself."""
        state = cpu_state(monitor)
        if state is None:
            return None
        pc = state.registers["pc"]
        code = b"".join(word.to_bytes(4, "little") for word in monitor.memory(pc & ~3, 2))
        return pc if code[pc & 2 :].startswith(_BRANCH_TO_ITSELF) else None

    def _enough_looks(self, monitor: Monitor, place: int) -> float:
        """How often the core has to be seen there in a row: few times if no interrupt is enabled
        that could take it away (Armv8-M Architecture Reference Manual: SYST_CSR, NVIC_ISER)."""
        timer, enabled = monitor.memory(0xE000_E010, 1), monitor.memory(0xE000_E100, 16)
        if timer and enabled and not timer[0] & _TICKINT and not any(enabled):
            return _LOOKS
        return _LOOKS_IN_EXIT if self._function_at(place) == _EXIT else math.inf
