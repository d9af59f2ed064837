"""What the page of a night shows of a case beside its facts; the template only draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.nightly.history.case_state import Standing
from harness.nightly.history.steps import WATCHED, Watched


@dataclass(frozen=True)
class Line:
    """Of a console. ``marked``: the cause names it."""

    number: int
    text: str
    marked: bool


def lines_of(case: Standing) -> list[Line]:
    row = case.row
    if row is None or row.excerpt is None:
        return []
    marked = None if row.cause is None else row.cause.line
    numbered = enumerate(row.excerpt.lines, row.excerpt.first)
    return [Line(number, text, number == marked) for number, text in numbered]


def matrix_of(cases: Sequence[Standing]) -> dict[str, dict[str, list[Standing]]]:
    """Cells by target and model: a target may have a model with more than one firmware."""
    models = dict.fromkeys(_place(case)[1] for case in cases)
    rows: dict[str, dict[str, list[Standing]]] = {}
    for case in cases:
        target, model = _place(case)
        rows.setdefault(target, {name: [] for name in models})[model].append(case)
    return rows


def _place(case: Standing) -> tuple[str, str]:
    """A case without a row has only its name."""
    if case.row is not None:
        return case.row.target, case.row.model
    target, _, model = case.case.partition("/")
    return target, model.partition(" [")[0]


@dataclass(frozen=True)
class Trend:
    """``points``: the number of the night, the value, and whether the case failed then;
    ``steps``: the nights that begin another level."""

    name: str
    unit: str
    nights: int
    points: tuple[tuple[int, float, bool], ...]
    steps: tuple[int, ...] = ()

    @property
    def values(self) -> list[float]:
        return [value for _, value, _ in self.points]

    @property
    def text(self) -> str:
        first, last = self.values[0], self.values[-1]
        least, most = min(self.values), max(self.values)
        return (
            f"{self.name} over {self.nights} nights: {first:,g} to {last:,g} {self.unit}, "
            f"{least:,g} at least, {most:,g} at most"
        )


_TIME = Watched("time", "time", "s", "total")


def trends_of(case: Standing) -> list[Trend]:
    """The figures that two nights of the case have."""
    rows = [*case.earlier, *([] if case.row is None else [case.row])]
    found = []
    for figure in (*WATCHED, _TIME):
        values = [(r.seconds if figure is _TIME else r.metrics).get(figure.metric) for r in rows]
        points = tuple((n, y, rows[n].bad) for n, y in enumerate(values) if y is not None)
        steps = tuple(
            n for s in case.steps if s.figure is figure for n, r in enumerate(rows) if r is s.first
        )
        if len(points) > 1:
            found.append(Trend(figure.title, figure.unit, len(rows), points, steps))
    return found
