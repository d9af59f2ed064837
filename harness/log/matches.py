"""What went wrong on a console: failures, suspects, ExecuTorch's error codes, and the registers
that fault handlers print."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from harness.core.tables import read_table
from harness.log.events import CPU_FAULTS, FINAL, Doubt, Event, Kind
from harness.log.pattern import Match, Pattern, expression, named_groups, table, text

# What a code means: in the message of a step, in any error message, in that of a step that loads.
STEP_CODES: Final = {
    0x14: Kind.OPERATOR_MISSING,
    0x21: Kind.ALLOCATION_FAILED,
    0x31: Kind.ALLOCATION_FAILED,
}
ERROR_CODES: Final = {**STEP_CODES, 0x23: Kind.BAD_PROGRAM, 0x24: Kind.BAD_PROGRAM}
LOADING_CODES: Final = {**ERROR_CODES, 0x20: Kind.BACKEND_MISSING}


def named_code(message: bytes) -> int | None:
    """The ExecuTorch error a message carries, by number in either notation or by name."""
    names: dict[int, str] = read_table(__file__)["errors"]
    for match in expression(__file__, "code").finditer(message):
        value = int(match[1], 16 if match[1][:2].lower() == b"0x" else 10)
        if value in names:
            return value
    codes = {name.encode(): code for code, name in names.items()}
    return next((codes[word] for word in re.findall(rb"\w+", message) if word in codes), None)


def code_facts(code: int) -> dict[str, str]:
    return {"code": f"0x{code:02x}", "error": read_table(__file__)["errors"][code]}


REGISTER_LINES: Final = 40  # lines below a fault in which its registers may stand


def registers(line: bytes) -> dict[str, str]:
    """The registers on a line below a fault, by name; a kernel's place as ``pc_symbol``."""
    found = {}
    for value in expression(__file__, "address").findall(line):
        found["pc"] = value.decode()
    for name, value in expression(__file__, "register").findall(line):
        key = name.decode().lower()
        shown = value.decode()
        if not shown.startswith(("0x", "-")) and len(shown) in (8, 16):
            shown = f"0x{shown}"
        found[read_table(__file__)["registers"].get(key, key.split("/")[0])] = shown
    for name, place in expression(__file__, "kernel_place").findall(line):
        found[f"{name.decode()}_symbol"] = place.decode()
    return found


MOST: Final = 1000
_FAULTS = CPU_FAULTS | {Kind.ZEPHYR_FATAL, Kind.LINUX_OOPS, Kind.LINUX_PANIC, Kind.NO_ROOT}
# The faults that may escalate to a hard fault.
_ESCALATED = {Kind.MPU_FAULT, Kind.BUS_FAULT, Kind.USAGE_FAULT, Kind.SECURE_FAULT}
_STARS = b"***** "  # Zephyr's line that names the exception
_OUTSIDE = re.compile(rb"^/(?!dev/)|(?:^|/)\.\.(?:/|$)")
# "npu.macs_per_cc=8, optimizer.macs_per_cc=7" in the messages of the NPU's driver
_FIGURE = re.compile(rb"((?:\w+\.)?\w+)=(0x[0-9a-fA-F]+|-?\d+)")

MEANING: Final = "meaning"  # the fact that has it in words
_NO_PROGRAM: Final = "no program is there: it was not loaded to that place, or is not aligned"
_BUS_ABORT, _INTERFACE, _CHANNEL = 2, 11, 12  # the places of their bits


def npu_status(status: int) -> str:
    """The errors in a value of the NPU's register STATUS, in words; "" if it has none."""
    tables = read_table(__file__)
    found = [words for bit, words in tables["npu_status"].items() if status >> bit & 1]
    if status >> _BUS_ABORT & 1:
        channel = status >> _CHANNEL & 15
        doing = tables["npu_channels"].get(channel, f"using its channel {channel}")
        found.append(f"a bus abort on its AXI interface M{status >> _INTERFACE & 1} while {doing}")
    return " and ".join(found)


class Matches:
    """Collects events; ``settle`` decides at the end which doubted lines were failures."""

    def __init__(self) -> None:
        self.failures: list[Event] = []
        self.suspects: list[Event] = []
        self.dropped = 0
        self.registers_until = 0  # the last line where registers of the last fault may stand
        self.final = False  # nothing worth waiting for follows
        self._doubted: list[Event] = []
        self._dump = -REGISTER_LINES  # the last line that a fault handler logged
        self._early: Event | None = None  # registers that stand before their fault
        self._said = (-REGISTER_LINES, b"")  # what the fault handler said before, its first line
        self._said_until = -REGISTER_LINES

    @property
    def full(self) -> bool:
        return len(self.failures) >= MOST

    def match(self, number: int, line: bytes, row: Pattern, match: Match) -> bool:
        """Adds the event of a row. False when the error code on the line says that all is well."""
        kind, found = Kind(row.kind), named_groups(match)
        if row.codes:
            code = named_code(line)
            if code == 0:
                return False
            if code is not None:
                known = LOADING_CODES if row.codes == "loading" else STEP_CODES
                kind, found = known.get(code, kind), code_facts(code)
        elif kind is Kind.NPU_ERROR:
            found |= {text(name): text(value) for name, value in _FIGURE.findall(line)}
            if meaning := npu_status(int(found.get("status", "0"), 0)):
                found[MEANING] = meaning
        elif kind is Kind.FILE_NOT_OPENED and _OUTSIDE.search(match["path"]):
            found["outside"] = "the guest reached for a file outside of its directory"
        self.add(kind, number, line, found, row.doubt)
        return True

    def error(self, number: int, message: bytes) -> None:
        """Adds an error message that only a row of ``errors``, or none, knows."""
        code = named_code(message)
        kind = Kind.RUNNER_ERROR if code is None else ERROR_CODES.get(code, Kind.RUNNER_ERROR)
        facts = {} if code is None else code_facts(code)
        if found := table("errors").first(message):
            kind = Kind(found[0].kind)
            facts |= named_groups(found[1])
        if "identifier" in facts:
            facts[MEANING] = _NO_PROGRAM
        self.add(kind, number, message, facts)

    def add(
        self,
        kind: Kind,
        number: int,
        line: bytes,
        facts: dict[str, str],
        doubt: Doubt | None = None,
    ) -> None:
        event = Event(kind, number, text(line.strip()), dict(facts))
        if doubt is Doubt.ALWAYS:
            # The first failed job decides the verdict on a log, however many suspects there are.
            if len(self.suspects) < MOST or (
                kind is Kind.JOB_FAILED and all(s.kind is not kind for s in self.suspects)
            ):
                self.suspects.append(replace(event, facts={}))
        elif doubt is not None:
            before = (Kind.RUNNER_ERROR, number - 1)  # the line speaks of the error right before it
            while self.failures and (self.failures[-1].kind, self.failures[-1].line) == before:
                self._doubted.append(self.failures.pop())
            if len(self._doubted) < MOST:
                self._doubted.append(event)
        elif self.full:
            self.dropped += 1
        else:
            self.final = self.final or kind in FINAL
            self.failures.append(event)

    def settle(self, success: int) -> None:
        """At the end. ``success``: the last line that reports a success, else 0."""
        if self._early is not None:
            self.failures.append(self._early)
        for event in self._doubted:
            (self.suspects if success > event.line else self.failures).append(event)
        self._doubted, self._early = [], None
        self.failures.sort(key=lambda event: event.line)
        self.suspects.sort(key=lambda event: event.line)

    def fault(self, number: int, line: bytes) -> bool:
        """True when the line reports a fault; one reported on several lines is one event."""
        found = table("faults").first(line)
        if found is None:
            return False
        row, facts = found[0], named_groups(found[1])
        kind = next((kind for value, kind in row.kinds if value in facts.values()), row.kind)
        self._fault(number, Kind(kind), line, facts)
        return True

    def registers(self, number: int, line: bytes) -> bool:
        """True when the line gave the last fault a register that it did not have yet."""
        if number > self.registers_until or not self.failures:
            return False
        known = self.failures[-1].facts
        before = len(known)
        if reason := expression(__file__, "reason").search(line):
            known.setdefault("which", text(reason[1]))
        _collect(known, line)
        if len(known) == before:
            return False
        self._dump = number
        return True

    def dump(self, number: int, message: bytes) -> bool:
        """True when an error message belongs to a fault's, or begins with its registers."""
        above = number <= self._said_until + 2
        self._said_until = number
        if number <= self._dump + 2:  # some consoles put an empty line after every line
            self._dump = number
            if self._early is not None:
                _collect(self._early.facts, message)
            return True
        if not expression(__file__, "dumped").match(message):
            self._said = self._said if above else (number, message)
            return False
        self._dump = number
        if self._early is None:
            self._early = Event(Kind.CPU_EXCEPTION, number, text(message.strip()))
        _collect(self._early.facts, message)
        return True

    def _fault(self, number: int, kind: Kind, line: bytes, facts: dict[str, str]) -> None:
        _collect(facts, line)
        if self._early is not None and number <= self._early.line + REGISTER_LINES:
            facts.update({k: v for k, v in self._early.facts.items() if k not in facts})
            self._early = None
        if number <= self._said_until + 2 and self._said[1]:  # why there is a fault at all
            facts["fault"] = text(line.strip())
            number, line = self._said
        previous = self.failures[-1] if self.failures else None
        same = previous is not None and previous.kind in _FAULTS and kind in _FAULTS
        if previous is not None and same and number <= self.registers_until:
            previous.facts.update({k: v for k, v in facts.items() if k not in previous.facts})
            self.failures[-1] = _named(previous, kind, number, line)
        else:
            self.add(kind, number, line, facts)
        self.registers_until = number + REGISTER_LINES
        self._dump, self._said = max(number, self._said_until), (number, b"")


def _named(fault: Event, kind: Kind, number: int, line: bytes) -> Event:
    """The fault with what a later line of it adds."""
    if kind is Kind.STACK_OVERFLOW:  # why there was a fault at all
        return Event(kind, number, text(line.strip()), {"fault": fault.text, **fault.facts})
    unnamed = fault.kind is Kind.CPU_EXCEPTION and kind in CPU_FAULTS
    escalated = fault.kind is Kind.HARD_FAULT and kind in _ESCALATED and _STARS in line
    return replace(fault, kind=kind) if unnamed or escalated else fault


def _collect(known: dict[str, str], line: bytes) -> None:
    for name, value in registers(line).items():
        known.setdefault(name, value)
