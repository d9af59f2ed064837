"""Read a transcript: the log grammar of ExecuTorch runners lives here and nowhere else.

Bytes in, typed events out. The prefix grammars are those of FACTS-like public logs of
ExecuTorch's ``arm_executor_runner`` (``I [executorch:file.cpp:211 main()] message`` since
mid-2025, without the function before, without the brackets in early 2024) and of the bundled
runner, which speaks the newest of them. A reader must survive bytes that are not UTF-8: an
undefined-operator message can carry garbage.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum


class Kind(str, Enum):
    """What an event says. The value is the ``cause.kind`` that a verdict shows."""

    FAULT = "hard_fault"
    OPERATOR_MISSING = "operator_missing"
    ALLOCATION_FAILED = "allocation_failed"
    BACKEND_MISSING = "backend_missing"
    BAD_PROGRAM = "bad_program"
    INPUT_REJECTED = "input_rejected"
    OUTPUT_NOT_WRITTEN = "output_not_written"
    BUNDLE_FAILED = "bundled_test_failed"
    RUNNER_ERROR = "runner_error"
    SIMULATOR_ERROR = "simulator_error"


@dataclass(frozen=True)
class Event:
    """Something that went wrong, on line ``line`` (from 1) of the transcript."""

    kind: Kind
    line: int
    text: str
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Metric:
    """A figure the runner printed; ``value`` is in bytes or ticks, as its name says."""

    value: int
    line: int


@dataclass(frozen=True)
class OpTicks:
    """Ticks that one instruction of the program took in one input set."""

    input_set: int
    instruction: int
    operator: str
    ticks: int


@dataclass(frozen=True)
class Observation:
    lines: int
    failures: tuple[Event, ...]
    metrics: dict[str, Metric]
    op_ticks: tuple[OpTicks, ...] = ()
    build_id: str | None = None
    bundle_passes: int = 0
    complete_line: int | None = None  # of the end marker
    last_line: str = ""


# Level, then where; early vintages have no bracket, Zephyr's has no line number.
_PREFIX = re.compile(r"^([DIEF]) \[?executorch:([^\]\s:]+)(?::(\d+))?(?: [^\]]*)?\] ?(.*)$")
_END_MARKER = "Program complete, exiting."
_BUILD_ID = re.compile(r"^build id ([0-9a-f]{8,64})$")
_METRIC = re.compile(
    r"^((?:model_pte|input_file|method_allocator|planned|temp|peak_temp|stack)_?\w*)"
    r"\s*:\s+(\d+)(?: / (\d+))?(?:\s|$)"
)
_TICKS = re.compile(r"^system_counter_ticks:\s+(\d+)(?: \(set (\d+)\))?")
_OP_TICKS = re.compile(r"^op_ticks:\s+(\d+) (\d+) (\S+) (\d+)$")
_BUNDLE = re.compile(r"TEST: BundleIO index\[(\d+)\] Test_result: (PASS|FAIL)")
_MISSING = (
    re.compile(r"kernel '(?P<operator>[^']+)' not found"),
    re.compile(r"Missing operator: \[\d+\] (?P<operator>\S+)"),
)
_ALLOCATION = re.compile(
    r"(?:(?P<pool>[a-z][a-z_ ]*?) (?:is )?too small: )?"
    r"(?P<needed>\d+) ?(?:B|bytes) (?:requested|needed).*?(?P<had>\d+) ?(?:B|bytes) available"
)
_BACKEND = re.compile(r"[Bb]ackend (?P<backend>\S+) is not (?:registered|available)")
_FAULT = re.compile(
    r"^\s*(?:Hard fault\b|\*{5} (?:HARD|MPU|BUS|USAGE|SECURE) FAULT|>>> ZEPHYR FATAL ERROR|"
    r"Exception caught by function \w+Fault_Handler)"
)
_REGISTER = re.compile(r"\b(\w+)=(0x[0-9a-fA-F]+|-?\d+)")
_SIMULATOR = re.compile(
    r"^(?:qemu(?:-system-\w+)?: |Error: (?:\(E\d+\) )?|bwrap: "
    r"|.*error while loading shared libraries)"
)
_ERROR_KINDS = (
    (re.compile(r"cannot write|failed to (?:open|write) .*output", re.I), Kind.OUTPUT_NOT_WRITTEN),
    (
        re.compile(r"\binput\b.*\b(?:expects?|expected|needs|bytes)\b|no input", re.I),
        Kind.INPUT_REJECTED,
    ),
    (
        re.compile(r"InvalidProgram|0x23\b|not a valid program|program .*(?:invalid|truncated)"
                   r"|version|identifier", re.I),
        Kind.BAD_PROGRAM,
    ),
)  # fmt: skip


def observe(console: bytes) -> Observation:
    """Everything a transcript says. Linear in its size; never raises on its content."""
    return _Reader().read(_lines(console))


def _lines(console: bytes) -> Iterator[str]:
    for raw in console.split(b"\n"):
        yield raw.rstrip(b"\r").decode("utf-8", "backslashreplace")


class _Reader:
    """Accumulates events while the lines go by."""

    def __init__(self) -> None:
        self.failures: list[Event] = []
        self.metrics: dict[str, Metric] = {}
        self.op_ticks: list[OpTicks] = []
        self.build_id: str | None = None
        self.bundle_passes = 0
        self.complete_line: int | None = None

    def read(self, lines: Iterable[str]) -> Observation:
        number, last = 0, ""
        for number, line in enumerate(lines, 1):
            if line.strip():
                last = line
            self._line(number, line)
        return Observation(
            lines=number,
            failures=tuple(self.failures),
            metrics=self.metrics,
            op_ticks=tuple(self.op_ticks),
            build_id=self.build_id,
            bundle_passes=self.bundle_passes,
            complete_line=self.complete_line,
            last_line=last[:400],
        )

    def _line(self, number: int, line: str) -> None:
        prefix = _PREFIX.match(line)
        if prefix is None:
            self._bare(number, line)
            return
        level, _file, _line_of_file, message = prefix.groups()
        if self._classify(number, message) or level not in "EF":
            self._information(number, message)
            return
        kind = next((k for pattern, k in _ERROR_KINDS if pattern.search(message)), None)
        self._fail(kind or Kind.RUNNER_ERROR, number, message)

    def _bare(self, number: int, line: str) -> None:
        """A line without a runner's prefix: faults, registers, the simulator's own words."""
        if _FAULT.match(line):
            self._fail(Kind.FAULT, number, line.strip(), dict(_REGISTER.findall(line)))
        elif self.failures and self.failures[-1].kind is Kind.FAULT and "fsr=" in line:
            self.failures[-1].facts.update(_REGISTER.findall(line))
        elif _SIMULATOR.match(line):
            self._fail(Kind.SIMULATOR_ERROR, number, line.strip())

    def _classify(self, number: int, message: str) -> bool:
        """Failures that are recognised by their words, at whatever level they were logged."""
        for pattern in _MISSING:
            if match := pattern.search(message):
                self._fail(Kind.OPERATOR_MISSING, number, message, match.groupdict())
                return True
        if match := _ALLOCATION.search(message):
            facts = {k: v for k, v in match.groupdict().items() if v}
            self._fail(Kind.ALLOCATION_FAILED, number, message, facts)
            return True
        if match := _BACKEND.search(message):
            self._fail(Kind.BACKEND_MISSING, number, message, match.groupdict())
            return True
        if match := _BUNDLE.search(message):
            if match[2] == "FAIL":
                self._fail(Kind.BUNDLE_FAILED, number, message, {"index": match[1]})
            else:
                self.bundle_passes += 1
            return True
        return False

    def _information(self, number: int, message: str) -> None:
        if message == _END_MARKER:
            self.complete_line = number
        elif match := _METRIC.match(message):
            self.metrics[match[1]] = Metric(int(match[2]), number)
            if match[3]:
                self.metrics[match[1] + "_total"] = Metric(int(match[3]), number)
        elif match := _TICKS.match(message):
            self.metrics[f"ticks_set{match[2] or 0}"] = Metric(int(match[1]), number)
        elif match := _OP_TICKS.match(message):
            self.op_ticks.append(OpTicks(int(match[1]), int(match[2]), match[3], int(match[4])))
        elif match := _BUILD_ID.match(message):
            self.build_id = match[1]

    def _fail(
        self, kind: Kind, number: int, text: str, facts: dict[str, str] | None = None
    ) -> None:
        self.failures.append(Event(kind, number, text, dict(facts or {})))
