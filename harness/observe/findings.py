"""What went wrong, gathered: failures, suspects, and the registers that belong to a fault."""

from __future__ import annotations

from dataclasses import replace

from harness.observe.events import CPU_FAULTS, FINAL, Event, Kind
from harness.observe.faults import FAULTS, REGISTER_LINES, registers
from harness.observe.pattern import facts, table, text

MOST = 1000
_FAULTS = CPU_FAULTS | {Kind.ZEPHYR_FATAL, Kind.LINUX_OOPS}


class Findings:
    def __init__(self) -> None:
        self.failures: list[Event] = []
        self.suspects: list[Event] = []
        self.dropped = 0
        self.registers_until = 0  # the last line where registers of the last fault may stand
        self.final = False  # nothing worth waiting for follows
        self._table = table(FAULTS)

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
        return len(known) > before

    def _fault(self, number: int, kind: Kind, line: bytes, said: dict[str, str]) -> None:
        _collect(said, line)
        previous = self.failures[-1] if self.failures else None
        same = previous is not None and previous.kind in _FAULTS and kind in _FAULTS
        if previous is not None and same and number <= self.registers_until:
            previous.facts.update({k: v for k, v in said.items() if k not in previous.facts})
            if previous.kind is Kind.CPU_EXCEPTION and kind in CPU_FAULTS:  # now it has a name
                self.failures[-1] = replace(previous, kind=kind)
        else:
            self.fail(kind, number, line, said)
        self.registers_until = number + REGISTER_LINES


def _collect(known: dict[str, str], line: bytes) -> None:
    for name, value in registers(line).items():
        known.setdefault(name, value)
