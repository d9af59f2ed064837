"""A night as a file by a template: the page, and what CI services read of it; and what they show of
a case beside its facts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.nightly.history.case_state import NO_ROW, Standing, State
from harness.nightly.history.compare import Comparison
from harness.nightly.history.groups import short
from harness.nightly.history.steps import WATCHED, Watched
from harness.report.history import reproducing
from harness.report.templates import filled
from harness.system.files import disk_errors, write_whole

HERE = Path(__file__).parent


def write_page(file: Path, comparison: Comparison) -> None:
    """Raises DiskError."""
    with disk_errors("writing the page"):
        write_whole(file, render(comparison))


def render(comparison: Comparison, template: str = "night.html") -> str:
    """The page is one file: nothing is fetched, and no script runs but its own, which the policy
    names by its digest (Content Security Policy Level 3, section 2.3.1)."""
    script = (HERE / "night.js").read_text("utf-8")
    values = {
        "comparison": comparison,
        "matrix": matrix_of(comparison.cases),
        "anchors": {case.case: f"case-{number}" for number, case in enumerate(comparison.cases)},
        "State": State,
        "NO_ROW": NO_ROW,
        "style": (HERE / "night.css").read_text("utf-8"),
        "script": script,
        "script_digest": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    return filled(HERE / template, values, filters())


def filters() -> dict[str, Callable[..., Any]]:
    return {
        "short": short,
        "number": _number,
        "signed": _signed,
        "when": _when,
        "command": reproducing,
        "lines": lines_of,
        "trends": trends_of,
        "key": lambda state: state.name.lower(),
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,g}" if isinstance(value, float) else f"{value:,}"


def _signed(value: int) -> str:
    return f"{value:+,}"


def _when(time: str) -> str:
    """ "2026-11-22 02:00" of a time in ISO 8601."""
    return time[:16].replace("T", " ")


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
