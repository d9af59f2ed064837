"""What went wrong, gathered: failures, suspects, and the registers that belong to a fault."""

from __future__ import annotations

import re

from harness.observe import platforms
from harness.observe.events import FINAL, Event, Kind
from harness.observe.failures import text

MOST = 1000
# Zephyr's fatal reasons that are no CPU exception: stack overflow, kernel oops, kernel panic.
_KERNEL_REASONS = ("2", "3", "4")
_FAULTS = (Kind.FAULT, Kind.ZEPHYR_FATAL, Kind.LINUX_OOPS)


class Findings:
    def __init__(self) -> None:
        self.failures: list[Event] = []
        self.suspects: list[Event] = []
        self.dropped = 0
        self.registers_until = 0  # the last line where registers of the last fault may stand
        self.final = False  # nothing worth waiting for follows

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
        for words, pattern, kind in platforms.faults():
            if any(word in line for word in words) and (match := pattern.search(line)):
                facts = named_groups(match)
                self._fault(number, _exception(kind, facts), line, facts)
                return True
        return False

    def registers(self, number: int, line: bytes) -> bool:
        """True when the line gave the last fault a register it did not have yet."""
        if number > self.registers_until or not self.failures:
            return False
        facts = self.failures[-1].facts
        before = len(facts)
        _collect(facts, line)
        return len(facts) > before

    def _fault(self, number: int, kind: Kind, line: bytes, facts: dict[str, str]) -> None:
        _collect(facts, line)
        previous = self.failures[-1] if self.failures else None
        same = previous is not None and previous.kind in _FAULTS and kind in _FAULTS
        if previous is not None and same and number <= self.registers_until:
            previous.facts.update({k: v for k, v in facts.items() if k not in previous.facts})
        else:
            self.fail(kind, number, line, facts)
        self.registers_until = number + platforms.REGISTER_LINES


def _exception(kind: Kind, facts: dict[str, str]) -> Kind:
    """Zephyr's fatal error is a CPU exception unless it says another reason."""
    if kind is not Kind.ZEPHYR_FATAL or "assertion" in facts:
        return kind
    return kind if facts.get("reason") in _KERNEL_REASONS else Kind.FAULT


def named_groups(match: re.Match[bytes]) -> dict[str, str]:
    """What a pattern caught; "library2" is another way to catch "library"."""
    return {k.rstrip("0123456789"): text(v) for k, v in match.groupdict().items() if v}


def _collect(facts: dict[str, str], line: bytes) -> None:
    for name, value in platforms.registers(line).items():
        facts.setdefault(name, value)
