"""The figures of a program, a firmware and a run: what each means, its unit, who measures it.

A stage measures figures: "program" those of the ``.pte``, "firmware" those of the ELF, "run" what
the runner prints (``harness.log.figures``) and the sizes that need no disassembly. The
formulas of the first two are in ``harness.size.measure``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

from harness.core.tables import read_table

MeasuredIn = Literal["program", "firmware", "run"]


@dataclass(frozen=True)
class Figure:
    """One row. ``<REGION>`` and ``<word>`` in the name stand for many.

    ``gated``: its growth has to be accepted, and a budget may limit it; else it is only
    reported. ``per_toolchain``: another compiler makes another value.
    """

    name: str
    meaning: str
    stages: Sequence[MeasuredIn] = ("run",)
    unit: str = "bytes"
    per_toolchain: bool = True
    gated: bool = True
    bundled_only: bool = False  # the bundled runner's alone

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        many = re.sub("<[a-z]+>", "[a-z0-9_]+", self.name)
        return re.compile(many.replace("<REGION>", "[A-Z][A-Z0-9_]*"))

    def measured_by(self, stages: Iterable[MeasuredIn]) -> bool:
        """Whether one of the stages measures it."""
        return not set(self.stages).isdisjoint(stages)


# A figure that only a third-party runner prints.
UNLISTED = Figure("", "")


@cache
def figures() -> tuple[Figure, ...]:
    """Return the table of figures; the first row that matches applies."""
    return tuple(Figure(**row) for row in read_table(__file__))


def figure(name: str) -> Figure:
    """Return the row of a figure, or UNLISTED."""
    return next((row for row in figures() if row.pattern.fullmatch(name)), UNLISTED)


def gated_figures(figures: Mapping[str, int], stages: Iterable[MeasuredIn]) -> dict[str, int]:
    """Return the gated figures that one of the stages measures."""
    wanted = frozenset(stages)
    rows = {name: figure(name) for name in figures}
    return {n: figures[n] for n, row in rows.items() if row.gated and row.measured_by(wanted)}
