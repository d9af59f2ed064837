"""What a console reports besides faults and outputs: progress, figures, versions."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from harness.core.verdict import Word
from harness.log.events import Item, OpTicks, Progress, SimulatorStop, Stage, StopReason
from harness.log.outputs import Tensors
from harness.log.pattern import Match, Pattern, named_groups, table, text

_MAX_ENTRIES: Final = 100_000  # entries of a list
_MAX_NAMES: Final = 1000
_MAX_STAGES: Final = 1000
# What a verdict rests on.
_VERDICT_KINDS: Final = frozenset({Item.BUNDLE_PASS, Stage.COMPLETE, Stage.ENDED})


class Jobs:
    """Inferences that tasks send to NPUs. Each is answered with a status."""

    def __init__(self) -> None:
        self._open: set[bytes] = set()
        self._failed = False
        self._last_answer_line: int | None = None

    def add(self, number: int, job: bytes, status: bytes | None) -> None:
        """``status`` of an answer; None when a job is only sent or taken."""
        if status is not None:
            self._open.discard(job)
            self._last_answer_line = number
            self._failed = self._failed or bool(status.strip(b"0"))
        elif len(self._open) < _MAX_NAMES:
            self._open.add(job)

    @property
    def all_succeeded_line(self) -> int | None:
        """The last answer, when every job has one and none failed."""
        return None if self._open or self._failed else self._last_answer_line


class Figures:
    """Collects what the console reports besides faults."""

    def __init__(self, tensors: Tensors) -> None:
        self.metrics: dict[str, int] = {}
        self.pmu: dict[str, int] = {}
        self.op_ticks: list[OpTicks] = []
        self.progress: list[Progress] = []
        self.output_files: list[str] = []
        self.passes: list[int] = []
        self.build_id: str | None = None
        self.complete_line: int | None = None
        self.ended_line: int | None = None
        self.output_count: int | None = None
        self.stop: SimulatorStop | None = None
        self.versions: dict[str, str] = {}
        self.jobs = Jobs()
        self._tensors = tensors
        self._handlers: dict[Word, Callable[[int, bytes, Match], None]] = {
            Item.METRIC: self._metric,
            Item.TICKS: partial(self._time, "ticks"),
            Item.CYCLES: partial(self._time, "cycles"),
            Item.OP_TICKS: self._op_ticks,
            Item.BUILD_ID: self._build_id,
            Item.COUNTER: self._counter,
            Item.BUNDLE_PASS: self._bundle_pass,
            Item.OUTPUT_FILE: self._output_file,
            Item.OUTPUT_COUNT: self._output_count,
            Item.PRINTED_ELEMENT: self._element,
            Item.JOB: self._job,
            Item.VERSION: self._version,
            Stage.COMPLETE: self._complete,
            Stage.ENDED: self._ended,
        }

    def message(self, number: int, message: bytes, *, quoted: bool = False) -> int:
        """A runner's message that is no failure. ``quoted``: perhaps in another program's line,
        where it proves nothing. Returns where what a row knows of it ends."""
        found = table("message_heads", "heads", "inside").first(message)
        if found is not None and not (quoted and found[0].kind in _VERDICT_KINDS):
            self.match(number, message, *found)
        return len(message) if found is None else found[1].end()

    def bare(self, number: int, line: bytes) -> bool:
        """A line that no other table matched and that no runner wrote. True when a row knows it."""
        if found := table("heads", "inside").first(line):
            self.match(number, line, *found)
        return found is not None

    def match(self, number: int, line: bytes, row: Pattern, match: Match) -> None:
        if handler := self._handlers.get(row.kind):
            handler(number, line, match)
        elif isinstance(row.kind, StopReason):
            self._simulator_stop(number, line, row.kind)
        else:
            self.reached(Stage(row.kind), number, line)

    def reached(self, stage: Stage, number: int, line: bytes) -> None:
        if len(self.progress) < _MAX_STAGES:
            self.progress.append(Progress(stage, number, text(line[:200])))

    def _complete(self, number: int, _line: bytes, match: Match) -> None:
        self.complete_line = number
        self.reached(Stage.COMPLETE, number, match[1])

    def _ended(self, number: int, line: bytes, _match: Match) -> None:
        self.ended_line = number
        self.reached(Stage.ENDED, number, line)

    def _metric(self, _number: int, _line: bytes, match: Match) -> None:
        name = match[1].decode()
        _set(self.metrics, name, match[2])
        if match[3]:
            _set(self.metrics, f"{name}_total", match[3])

    def _time(self, unit: str, _number: int, _line: bytes, match: Match) -> None:
        _set(self.metrics, f"{unit}_set{int(match[2] or 0)}", match[1])

    def _op_ticks(self, _number: int, _line: bytes, match: Match) -> None:
        if len(self.op_ticks) < _MAX_ENTRIES:
            input_set, instruction, ticks = int(match[1]), int(match[2]), int(match[4])
            self.op_ticks.append(OpTicks(input_set, instruction, text(match[3]), ticks))

    def _build_id(self, _number: int, _line: bytes, match: Match) -> None:
        self.build_id = match[1].decode()

    def _bundle_pass(self, number: int, _line: bytes, _match: Match) -> None:
        if len(self.passes) < _MAX_ENTRIES:
            self.passes.append(number)

    def _output_file(self, number: int, line: bytes, match: Match) -> None:
        if len(self.output_files) < _MAX_ENTRIES:
            self.output_files.append(text(match[1]))
        self.reached(Stage.OUTPUT, number, line)

    def _output_count(self, _number: int, _line: bytes, match: Match) -> None:
        self.output_count = int(match[1])

    def _element(self, number: int, _line: bytes, match: Match) -> None:
        self._tensors.add(number, 0, int(match[1]), b"", match[2])

    def _job(self, number: int, line: bytes, match: Match) -> None:
        for each in match.re.finditer(line):  # two senders may share a line
            self.jobs.add(number, each[1], each[2])
        self.reached(Stage.EXECUTED if match[2] else Stage.EXECUTING, number, line)

    def _version(self, _number: int, _line: bytes, match: Match) -> None:
        for name, version in named_groups(match).items():
            self.versions.setdefault(name, version)

    def _simulator_stop(self, number: int, line: bytes, reason: StopReason) -> None:
        if self.stop is None or not self.stop.reason.is_limit:
            self.stop = SimulatorStop(reason, number, text(line.strip()))

    def _counter(self, _number: int, _line: bytes, match: Match) -> None:
        name, index = match[1].decode().replace("ethos-u : ", "ethosu_"), match[2].decode()
        if name == "ethosu_pmu_cntr":
            if not index.isdigit():  # newlib-nano prints "%zd" as it stands: the order tells it
                index = str(sum(known.startswith(name) for known in self.pmu))
            name += index
        _set(self.pmu, re.sub(r"\W+", "_", name).strip("_").lower(), match[3])


def _set(figures: dict[str, int], name: str, value: bytes) -> None:
    if name in figures or len(figures) < _MAX_NAMES:
        figures[name] = int(value)
