"""What the page of a night shows of a case beside its facts; the template only draws it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.nightly.history.model import Row
from harness.nightly.history.standing import Standing


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


def words_of(case: Standing) -> str:
    """What a search finds it by."""
    row = case.row
    cause = "" if row is None or row.cause is None else row.cause.kind
    of_row = () if row is None else (row.verdict, row.owner, cause)
    return " ".join(map(str, (case.case, case.state, *of_row))).lower()


@dataclass(frozen=True)
class Matrix:
    """Cells by (target, model): a target may have a model with more than one firmware."""

    models: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Standing, ...], ...]], ...]


def matrix_of(cases: Sequence[Standing]) -> Matrix:
    cells: dict[tuple[str, str], list[Standing]] = {}
    for case in cases:
        cells.setdefault(_place(case), []).append(case)
    targets = dict.fromkeys(target for target, _ in cells)
    models = tuple(dict.fromkeys(model for _, model in cells))
    rows = (
        (target, tuple(tuple(cells.get((target, model), ())) for model in models))
        for target in targets
    )
    return Matrix(models, tuple(rows))


def _place(case: Standing) -> tuple[str, str]:
    """A case without a row has only its name."""
    if case.row is not None:
        return case.row.target, case.row.model
    target, _, model = case.case.partition("/")
    return target, model.partition(" [")[0]


WIDTH, HEIGHT = 120.0, 24.0
_EDGE = 2.0
_Value = Callable[[Row], float | None]


@dataclass(frozen=True)
class Trend:
    """``line``: of a polyline; ``bad``: where nights failed; ``said``: the same in words."""

    name: str
    unit: str
    line: str
    bad: tuple[tuple[float, float], ...]
    first: float
    last: float
    least: float
    most: float
    nights: int

    @property
    def said(self) -> str:
        return (
            f"{self.name} over {self.nights} nights: {self.first:,g} to {self.last:,g} "
            f"{self.unit}, {self.least:,g} at least, {self.most:,g} at most"
        )


def _metric(name: str) -> _Value:
    return lambda row: row.metrics.get(name)


_FIGURES: tuple[tuple[str, str, _Value], ...] = (
    ("size of the .pte", "bytes", _metric("pte_bytes")),
    ("code", "bytes", _metric("elf_text")),
    ("instructions", "ticks", _metric("ticks_set0")),
    ("time", "s", lambda row: row.seconds.get("total")),
)


def trends_of(case: Standing) -> tuple[Trend, ...]:
    return trends((*case.earlier, *([] if case.row is None else [case.row])))


def trends(rows: Sequence[Row]) -> tuple[Trend, ...]:
    """``rows`` of one case, one a night, the oldest first; a figure that two of them have."""
    drawn = (_trend(name, unit, rows, value) for name, unit, value in _FIGURES)
    return tuple(trend for trend in drawn if trend is not None)


def _trend(name: str, unit: str, rows: Sequence[Row], value: _Value) -> Trend | None:
    points = [(n, y, row.bad) for n, row in enumerate(rows) if (y := value(row)) is not None]
    if len(points) < 2:
        return None
    values = [y for _, y, _ in points]
    least, most = min(values), max(values)
    steps, span = len(rows) - 1, (most - least) or 1
    placed = [
        (
            round(_EDGE + (WIDTH - 2 * _EDGE) * n / steps, 1),
            round(HEIGHT - _EDGE - (HEIGHT - 2 * _EDGE) * (y - least) / span, 1),
            bad,
        )
        for n, y, bad in points
    ]
    return Trend(
        name=name,
        unit=unit,
        line=" ".join(f"{x:g},{y:g}" for x, y, _ in placed),
        bad=tuple((x, y) for x, y, bad in placed if bad),
        first=values[0],
        last=values[-1],
        least=least,
        most=most,
        nights=len(rows),
    )
