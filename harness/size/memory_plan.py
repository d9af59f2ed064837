"""Checks where a program has its tensors in memory, before anything runs.

ExecuTorch gives tensors that are not needed at the same time the same bytes
(``exir/memory_planning.py``, 1.5.1), by lifetimes that a ``.pte`` does not have. Here they are
computed anew from the instructions, along all jumps. Nothing may be overwritten that an instruction
may still read.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.core.errors import ExportError, MalformedFile
from harness.core.safe_text import counted
from harness.formats.flatbuffer import FlatBuffer, Table
from harness.formats.pte import element_of, plans_of
from harness.formats.schema import BPTE, load_schema
from harness.size.dataflow import Dataflow, DataflowStep
from harness.system.files import read_regular

EXECUTORCH_ALIGNMENT = 16  # bytes; ALIGNMENT in exir/tensor.py


@dataclass(frozen=True)
class Life:
    """A tensor at bytes ``[start, end)`` of a buffer.

    ``first`` and ``last`` instruction that need it: -1 is before the method, the number of
    instructions after it. ``maker``: what writes it."""

    value: int
    tensor: str
    maker: str
    buffer: int
    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True)
class PlannedBuffer:
    """A buffer of the memory plan.

    ``needed``: the bytes in use before the method, during each instruction, and after it. Most are
    during ``instruction``, the first such; by ``values``, the largest first."""

    number: int
    bytes: int
    needed: tuple[int, ...]
    instruction: int
    values: tuple[int, ...]


@dataclass(frozen=True)
class PlanFault:
    text: str
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class MemoryPlan:
    """``instructions``: operator and layer of each."""

    method: str
    instructions: tuple[str, ...]
    tensors: tuple[Life, ...]
    buffers: tuple[PlannedBuffer, ...]
    faults: tuple[PlanFault, ...]


class MemoryPlanError(ExportError):
    """The facts are those of the first fault; ``faults``: those of each."""

    kind = "memory_plan"

    def __init__(self, path: Path, faults: Sequence[PlanFault]) -> None:
        more = f"; and {counted(len(faults) - 1, 'more fault')}" if faults[1:] else ""
        super().__init__(
            f"the memory plan is wrong: {faults[0].text}{more}",
            hint=f"`hil size {path} --html plan.html` draws the plan; it comes from ExecuTorch's "
            "exir/memory_planning.py: look at what was changed there, or use another export",
            path=path,
            faults=[dict(fault.facts) for fault in faults],
            **faults[0].facts,
        )


def require_sound_plan(pte: Path, layers: Sequence[str] = (), alignment: int = 1) -> None:
    """Check a program's memory plan. Raises MemoryPlanError and OSError.

    A file that violates the format passes: its runner refuses it with a better message. Parameters
    are those of ``memory_plans``."""
    try:
        plans = memory_plans(pte, layers, alignment)
    except MalformedFile:
        return
    if faults := [fault for plan in plans for fault in plan.faults]:
        raise MemoryPlanError(pte, faults)


def memory_plans(
    file: Path, layers: Sequence[str] = (), alignment: int = 1
) -> tuple[MemoryPlan, ...]:
    """Return the plan of each method of a ``.pte`` or ``.bpte``; () for another file.

    ``layers``: by instruction. ``alignment``: the planner's in bytes, if it is known; a tensor has
    to be aligned to its elements in any case. Raises MalformedFile and OSError."""
    content = read_regular(file)
    if content[4:6] == b"BP":
        bundle = FlatBuffer(memoryview(content), load_schema(BPTE), len(content)).root()
        content = bytes(program.raw()) if (program := bundle.get("program")) else b""
    if content[4:6] != b"ET":
        return ()
    try:
        return tuple(_Check(plan, layers, alignment).plan() for plan in plans_of(content))
    except LookupError as error:  # a number of something that it does not have
        raise MalformedFile(f"{file} contradicts itself: {error}", 0) from error


class _Check:
    """The state of a check.

    ``_needed``: the values that may be read after each step, before they are written again.
    ``_since``: the first step that writes a value. ``_spots``: the tensors, with their places, that
    a value may stand for."""

    def __init__(self, plan: Table, layers: Sequence[str], alignment: int) -> None:
        self._plan, self._alignment = plan, alignment
        self._sizes = tuple(plan.items("non_const_buffer_sizes"))
        self._flow = Dataflow(plan, layers)
        self._steps = self._flow.steps
        self._needed, self._since = _needed_after(self._steps), _written_since(self._steps)
        values = {v for s in self._steps for v in (*s.reads, *s.overwrites, *s.binds)}
        self._spots = {value: self._flow.spots(value) for value in values}

    def plan(self) -> MemoryPlan:
        faults = (*self._misplaced(), *self._unwritten(), *self._overwritten())
        lives = tuple(self._lives())
        buffers = tuple(self._buffer(n, size, lives) for n, size in enumerate(self._sizes) if size)
        names = tuple(step.name for step in self._steps[1:-1])
        return MemoryPlan(self._plan.get("name") or "", names, lives, buffers, faults)

    # ---- what is wrong

    def _misplaced(self) -> Iterator[PlanFault]:
        for value, place in self._flow.places.items():
            alignment = max(self._alignment, element_of(self._flow.values[value])[0])
            size = self._sizes[place.buffer] if 0 < place.buffer < len(self._sizes) else 0
            if place.end > size:
                yield self._fault(value, f"ends outside its buffer, which has {size:#x} bytes")
            elif place.start % alignment:
                yield self._fault(value, f"is not aligned to {alignment} bytes")

    def _unwritten(self) -> Iterator[PlanFault]:
        written = {value for step in self._steps for value in step.binds}
        for step in self._steps:
            for value in sorted((step.reads - written) & self._flow.places.keys()):
                written.add(value)
                text = f"is read by {step}, and nothing writes it"
                yield self._fault(value, text, reader=step.number, operator=step.operator)

    def _overwritten(self) -> Iterator[PlanFault]:
        found: set[frozenset[int]] = set()
        for index, step in enumerate(self._steps):
            for by in sorted(step.overwrites):
                for value in sorted(self._alive(index) | step.reads):
                    pair = frozenset((value, by))
                    if pair not in found and self._collide(value, by):
                        found.add(pair)
                        yield self._overwrite(value, by, index)

    def _alive(self, index: int) -> set[int]:
        """Return the values that are needed after a step, and written by then."""
        return {value for value in self._needed[index] if self._since.get(value, index) <= index}

    def _collide(self, value: int, by: int) -> bool:
        own, other = self._spots[value], self._spots[by]
        return own.keys().isdisjoint(other) and any(
            place.overlaps(another) for place in own.values() for another in other.values()
        )

    def _overwrite(self, value: int, by: int, index: int) -> PlanFault:
        step = self._steps[index]
        reader = step if value in step.reads else self._reader(value, index)
        why = ", which reads it" if reader is step else f" while {reader} still reads it"
        if not reader.following:
            why = ", although it is an output of the method"
            if value in self._flow.states:
                why = ", although it is a mutable buffer, which the next run needs"
        text = f"is overwritten by {step}{why}; that writes {self._described(by)}"
        facts = {"operator": step.operator, "layer": step.layer}
        numbers = {"instruction": step.number, "reader": reader.number, "overwritten_by": by}
        return self._fault(value, text, **facts, **numbers)

    def _reader(self, value: int, index: int) -> DataflowStep:
        """Return the nearest step after ``index`` that reads what a value has there."""
        waiting, seen = deque(self._steps[index].following), {index}
        while value not in self._steps[number := waiting.popleft()].reads:
            if number not in seen and value not in self._steps[number].binds:
                waiting.extend(self._steps[number].following)
            seen.add(number)
        return self._steps[number]

    def _fault(self, value: int, text: str, **facts: int | str) -> PlanFault:
        places = [tuple(place) for place in self._flow.spots(value).values()]
        facts_of_value = {"value": value, "places": places}
        return PlanFault(f"{self._described(value)} {text}", {**facts_of_value, **facts})

    def _described(self, value: int) -> str:
        places = dict.fromkeys(map(str, self._flow.spots(value).values()))
        return f"value {value} {' or '.join(places)}"

    # ---- the picture

    def _lives(self) -> Iterator[Life]:
        alive: dict[int, list[int]] = defaultdict(list)
        makers: dict[int, str] = {}
        for index, step in enumerate(self._steps):
            for value in self._alive(index) | step.reads | step.overwrites | step.binds:
                for tensor in self._spots[value]:
                    alive[tensor].append(step.number)
            for value in step.overwrites:
                makers.setdefault(value, ("" if value in step.binds else "scratch of ") + step.name)
        makers |= dict.fromkeys(self._flow.states, "mutable buffer")
        makers |= {value: f"input {n}" for n, value in enumerate(self._flow.inputs)}
        for value, numbers in sorted(alive.items()):
            tensor = self._flow.values[value]
            shape = f"{element_of(tensor)[1]}{[*tensor.items('sizes')]}".replace(" ", "")
            place, maker = self._flow.places[value], makers.get(value, "nothing")
            yield Life(value, shape, maker, *place, min(numbers), max(numbers))

    def _buffer(self, number: int, size: int, lives: Sequence[Life]) -> PlannedBuffer:
        needed = [0] * len(self._steps)
        own = [life for life in lives if life.buffer == number]
        for life in own:
            for n in range(life.first + 1, life.last + 2):
                needed[n] += life.end - life.start
        peak = needed.index(max(needed)) - 1
        there = [life for life in own if life.first <= peak <= life.last]
        there.sort(key=lambda life: life.start - life.end)
        return PlannedBuffer(number, size, tuple(needed), peak, tuple(n.value for n in there))


def _needed_after(steps: Sequence[DataflowStep]) -> list[set[int]]:
    before: list[set[int]] = [set() for _ in steps]
    after: list[set[int]] = [set() for _ in steps]
    changed = True
    while changed:
        changed = False
        for index in reversed(range(len(steps))):
            step = steps[index]
            after[index] = set().union(*(before[following] for following in step.following))
            needed = step.reads | (after[index] - step.binds)
            changed |= needed != before[index]
            before[index] = needed
    return after


def _written_since(steps: Sequence[DataflowStep]) -> dict[int, int]:
    """Return the index of the first step that writes each value.

    If a loop writes it, it is the one before the loop: its first step follows its last."""
    since: dict[int, int] = {}
    for index, step in enumerate(steps):
        for value in step.binds:
            since.setdefault(value, index)
    for index, step in enumerate(steps):
        for start in (following for following in step.following if following <= index):
            since |= {v: start - 1 for v, first in since.items() if start <= first <= index}
    return since
