"""The operations of a stream without branches, each of its kind prepared once.

A transpose or a pixel shuffle becomes up to half a million pools that differ in nothing but where
their maps begin. What they share is checked, prepared and made a job of when the first of them
comes; the others are addresses.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.ethosu import work
from harness.ethosu.plan import (
    ConvolutionPlan,
    CopyPlan,
    Prepared,
    inputs_of,
    maps_of,
    reads_chained,
)
from harness.ethosu.registers import RegisterSet
from harness.ethosu.stream import Operation, Registers, State, walk
from harness.formats.cop import NpuConfig

Prepare = Callable[[Operation, Registers, NpuConfig], Prepared]
Moves = tuple[str, str, str]
_COLUMNS = 5  # kind, whether it is not the first of its kind, and up to three addresses
_KEPT = 1 << 12  # of those that numpy does and that are not the first of their kind


@dataclass(frozen=True, slots=True)
class Distinct:
    """The first of its kind. ``moves``: in which registers the others may have other values, as a
    job reads them (first input, second one, output; or both ends of a copy; "": it has no such);
    None where more than that may depend on an address, so that there are no others."""

    operation: Operation
    registers: Registers
    prepared: Prepared
    asked: work.Asked
    moves: Moves | None


class Operations:
    """``distinct`` in the order in which they came. ``places`` has a row for each operation, as
    the kernel's ``Place``."""

    def __init__(self, prepare: Prepare, config: NpuConfig) -> None:
        self.distinct: list[Distinct] = []
        self.places: NDArray[np.int64] = np.zeros((0, _COLUMNS), np.int64)
        self._offsets = array("q")
        self._prepare, self._config = prepare, config
        self._again: dict[int, Prepared] = {}

    def read(self, words: Sequence[int], names: RegisterSet, total: work.Work) -> None:
        """Of a surveyed stream. Raises WorkLimit for what ``total`` does not allow, and what
        ``prepare`` raises."""
        state, rows = State(), array("q")
        kinds: dict[tuple[object, ...], tuple[int, work.Asked, Moves]] = {}
        last, kind = ("", 0, -1), None
        for offset, name, parameter in walk(words, names, state):
            self._offsets.append(offset)
            now = name, parameter, state.changes
            if now != last:
                last, kind = now, kinds.get((name, parameter, *state.others.values()))
            if kind is not None:
                index, asked, (a, b, c) = kind
                total.again(asked, offset)
                at = state.addresses.get
                rows.extend((index, 1, at(a, 0), at(b, 0), at(c, 0)))
                continue
            index = len(self.distinct)
            rows.extend((index, 0, 0, 0, 0))
            one = self._first(Operation(offset, name, parameter), state, total)
            if one.moves is not None:
                kind = kinds[(name, parameter, *state.others.values())] = (
                    index, one.asked, one.moves
                )  # fmt: skip
            self.distinct.append(one)
            work.check_distinct(len(self.distinct), offset)
        self.places = np.frombuffer(rows, np.int64).reshape(-1, _COLUMNS)

    def _first(self, operation: Operation, state: State, total: work.Work) -> Distinct:
        registers = state.registers(operation.offset)
        asked = work.asked(operation, registers)
        total.add(asked, operation.offset)
        prepared = self._prepare(operation, registers, self._config)
        return Distinct(operation, registers, prepared, asked, moves_of(prepared))

    def __len__(self) -> int:
        return len(self.places)

    def kind(self, index: int) -> int:
        found: int = self.places[index, 0].item()
        return found

    def of(self, index: int) -> Distinct:
        """The first of its kind."""
        return self.distinct[self.kind(index)]

    def offset(self, index: int) -> int:
        return self._offsets[index]

    def prepared(self, index: int) -> Prepared:
        """With its own addresses."""
        one = self.of(index)
        if one.moves is None or not self.places[index, 1]:
            return one.prepared
        found = self._again.get(index)
        if found is None:
            places = dict(zip(one.moves, self.places[index, 2:].tolist(), strict=True))
            offset = self._offsets[index]
            registers = one.registers.elsewhere(places, offset)
            operation = Operation(offset, one.operation.name, one.operation.parameter)
            found = self._prepare(operation, registers, self._config)
            if len(self._again) < _KEPT:
                self._again[index] = found
        return found


def moves_of(prepared: Prepared) -> Moves | None:
    """As ``Distinct.moves``; BASE0 is where a map of one tile begins (``split_tiles``)."""
    plan = prepared.plan
    if isinstance(plan, CopyPlan):
        return "DMA0_SRC", "DMA0_DST", ""
    if plan is None or prepared.chains is not None or isinstance(plan, ConvolutionPlan):
        return None
    if any(len(one.tiles) > 1 for one in maps_of(plan)) or reads_chained(plan):
        return None
    first, second = ("" if one is None else f"{one.what}_BASE0" for one in inputs_of(plan))
    return first, second, f"{plan.output.ofm.what}_BASE0"
