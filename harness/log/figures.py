"""What a console reports besides faults and outputs: progress, figures, versions."""

from __future__ import annotations

import re
from typing import Final, TypeVar

from harness.core.verdict import Word
from harness.log.events import Item, OpTicks, Progress, SimulatorStop, Stage, StopReason
from harness.log.outputs import Tensors
from harness.log.pattern import Match, Pattern, named_groups, table, text

_Entry = TypeVar("_Entry")
_MAX_ENTRIES: Final = 100_000  # entries of a list
_MAX_NAMES: Final = 1000
_MAX_STAGES: Final = 1000
# The items that a verdict rests on.
_VERDICT_KINDS: Final = frozenset({Item.BUNDLE_PASS, Stage.COMPLETE, Stage.ENDED})


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
        self._tensors = tensors

    def message(self, number: int, message: bytes, *, quoted: bool = False) -> int:
        """Reads a runner's message that reports no failure. ``quoted``: it may be part of another
        program's line and then proves nothing. Returns the offset where the row's match ends."""
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
        kind = row.kind
        if kind is Item.METRIC:
            name = match[1].decode()
            _set(self.metrics, name, match[2])
            if match[3]:
                _set(self.metrics, f"{name}_total", match[3])
        elif kind is Item.TICKS or kind is Item.CYCLES:
            _set(self.metrics, f"{kind}_set{int(match[2] or 0)}", match[1])
        elif kind is Item.OP_TICKS:
            numbers = int(match[1]), int(match[2])
            _add(self.op_ticks, OpTicks(*numbers, text(match[3]), int(match[4])))
        elif kind is Item.BUILD_ID:
            self.build_id = match[1].decode()
        elif kind is Item.COUNTER:
            self._counter(match)
        elif kind is Item.BUNDLE_PASS:
            _add(self.passes, number)
        elif kind is Item.OUTPUT_COUNT:
            self.output_count = int(match[1])
        elif kind is Item.PRINTED_ELEMENT:
            self._tensors.add(number, 0, int(match[1]), b"", match[2])
        elif kind is Item.VERSION:
            for name, version in named_groups(match).items():
                self.versions.setdefault(name, version)
        elif isinstance(kind, StopReason):
            if self.stop is None or not self.stop.reason.is_limit:
                self.stop = SimulatorStop(kind, number, text(line.strip()))
        else:
            self._step(number, line, kind, match)

    def _step(self, number: int, line: bytes, kind: Word, match: Match) -> None:
        if kind is Item.OUTPUT_FILE:
            _add(self.output_files, text(match[1]))
            self.reached(Stage.OUTPUT, number, line)
        elif kind is Stage.COMPLETE:
            self.complete_line = number
            self.reached(kind, number, match[1])
        else:
            self.ended_line = number if kind is Stage.ENDED else self.ended_line
            self.reached(Stage(kind), number, line)

    def reached(self, stage: Stage, number: int, line: bytes) -> None:
        if len(self.progress) < _MAX_STAGES:
            self.progress.append(Progress(stage, number, text(line[:200])))

    def _counter(self, match: Match) -> None:
        name, index = match[1].decode().replace("ethos-u : ", "ethosu_"), match[2].decode()
        if name == "ethosu_pmu_cntr":
            if not index.isdigit():  # newlib-nano prints "%zd" as it stands: the order tells it
                index = str(sum(known.startswith(name) for known in self.pmu))
            name += index
        _set(self.pmu, re.sub(r"\W+", "_", name).strip("_").lower(), match[3])


def _set(figures: dict[str, int], name: str, value: bytes) -> None:
    if name in figures or len(figures) < _MAX_NAMES:
        figures[name] = int(value)


def _add(entries: list[_Entry], entry: _Entry) -> None:
    if len(entries) < _MAX_ENTRIES:
        entries.append(entry)
