"""What went wrong, gathered: failures, suspects, and the registers that belong to a fault."""

from __future__ import annotations

from dataclasses import replace

from harness.observe.events import CPU_FAULTS, FINAL, Event, Kind
from harness.observe.failures import Excuse
from harness.observe.faults import FAULTS, REGISTER_LINES, dumped, registers
from harness.observe.pattern import facts, table, text

MOST = 1000
_FAULTS = CPU_FAULTS | {Kind.ZEPHYR_FATAL, Kind.LINUX_OOPS, Kind.LINUX_PANIC, Kind.NO_ROOT}
# What a hard fault may have been before it was escalated.
_ESCALATED = {Kind.MPU_FAULT, Kind.BUS_FAULT, Kind.USAGE_FAULT, Kind.SECURE_FAULT}
_STARS = b"***** "  # so Zephyr names an exception


class Findings:
    def __init__(self) -> None:
        self.failures: list[Event] = []
        self.suspects: list[Event] = []
        self.dropped = 0
        self.registers_until = 0  # the last line where registers of the last fault may stand
        self.final = False  # nothing worth waiting for follows
        self._table = table(FAULTS)
        self._doubted: list[tuple[Event, Excuse]] = []
        self._dump = -REGISTER_LINES  # the last line of what a fault handler logs
        self._early: Event | None = None  # registers that stand in front of their fault

    @property
    def full(self) -> bool:
        return len(self.failures) >= MOST

    def fail(self, kind: Kind, number: int, said: bytes, facts: dict[str, str]) -> None:
        if self.full:
            self.dropped += 1
            return
        self.final = self.final or kind in FINAL
        self.failures.append(Event(kind, number, text(said.strip()), dict(facts)))

    def suspect(self, kind: Kind, number: int, said: bytes) -> None:
        if len(self.suspects) < MOST:
            self.suspects.append(Event(kind, number, text(said.strip())))

    def doubt(
        self, kind: Kind, number: int, said: bytes, facts: dict[str, str], excuse: Excuse
    ) -> None:
        """A failure, unless the run ends in the way that excuses it."""
        if excuse is Excuse.SUCCESS:  # it speaks of what stands right before it
            while self.failures and self._is_before(self.failures[-1], number):
                self._doubted.append((self.failures.pop(), excuse))
        if len(self._doubted) < MOST:
            self._doubted.append((Event(kind, number, text(said.strip()), dict(facts)), excuse))

    @staticmethod
    def _is_before(event: Event, number: int) -> bool:
        return event.kind is Kind.RUNNER_ERROR and event.line == number - 1

    def settle(self, success: int, jobs_ended_well: bool) -> None:
        """At the end. ``success``: the last line that says that something went well, else 0."""
        if self._early is not None:
            self.failures.append(self._early)
        for event, excuse in self._doubted:
            well = success > event.line if excuse is Excuse.SUCCESS else jobs_ended_well
            (self.suspects if well else self.failures).append(event)
        self._doubted, self._early = [], None
        self.failures.sort(key=lambda event: event.line)
        self.suspects.sort(key=lambda event: event.line)

    def fault(self, number: int, line: bytes) -> bool:
        """True when the line tells of a fault; one told on several lines is one event."""
        found = self._table.first(line)
        if found is None:
            return False
        kind, match = found
        self._fault(number, kind, line, facts(match))
        return True

    def registers(self, number: int, line: bytes) -> bool:
        """True when the line gave the last fault a register it did not have yet."""
        if number > self.registers_until or not self.failures:
            return False
        known = self.failures[-1].facts
        before = len(known)
        _collect(known, line)
        if len(known) == before:
            return False
        self._dump = number
        return True

    def dump(self, number: int, message: bytes) -> bool:
        """True when an error message only goes on with a fault's, or begins with its registers."""
        if number <= self._dump + 2:  # some consoles put an empty line behind every line
            self._dump = number
            if self._early is not None:
                _collect(self._early.facts, message)
            return True
        if not dumped(message):
            return False
        self._dump = number
        if self._early is None:
            self._early = Event(Kind.CPU_EXCEPTION, number, text(message.strip()))
        _collect(self._early.facts, message)
        return True

    def _fault(self, number: int, kind: Kind, line: bytes, said: dict[str, str]) -> None:
        _collect(said, line)
        if self._early is not None and number <= self._early.line + REGISTER_LINES:
            said.update({k: v for k, v in self._early.facts.items() if k not in said})
            self._early = None
        previous = self.failures[-1] if self.failures else None
        same = previous is not None and previous.kind in _FAULTS and kind in _FAULTS
        if previous is not None and same and number <= self.registers_until:
            previous.facts.update({k: v for k, v in said.items() if k not in previous.facts})
            self.failures[-1] = _named(previous, kind, number, line)
        else:
            self.fail(kind, number, line, said)
        self.registers_until = number + REGISTER_LINES
        self._dump = number


def _named(fault: Event, kind: Kind, number: int, line: bytes) -> Event:
    """The fault with what a later line of it says."""
    if kind is Kind.STACK_OVERFLOW:  # why there was a fault at all
        return Event(kind, number, text(line.strip()), {"fault": fault.text, **fault.facts})
    unnamed = fault.kind is Kind.CPU_EXCEPTION and kind in CPU_FAULTS
    escalated = fault.kind is Kind.HARD_FAULT and kind in _ESCALATED and _STARS in line
    return replace(fault, kind=kind) if unnamed or escalated else fault


def _collect(known: dict[str, str], line: bytes) -> None:
    for name, value in registers(line).items():
        known.setdefault(name, value)
