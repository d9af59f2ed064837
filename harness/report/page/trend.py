"""The figures of a case over its last nights, as the points of a small plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.nightly.history.model import Row

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


def trends(rows: Sequence[Row]) -> tuple[Trend, ...]:
    """``rows`` of one case, one a night, the oldest first; a figure that two of them have."""
    found = (_trend(name, unit, rows, value) for name, unit, value in _FIGURES)
    return tuple(trend for trend in found if trend is not None)


def _trend(name: str, unit: str, rows: Sequence[Row], value: _Value) -> Trend | None:
    points = [(n, got, row.bad) for n, row in enumerate(rows) if (got := value(row)) is not None]
    if len(points) < 2:
        return None
    values = [got for _, got, _ in points]
    least, most = min(values), max(values)
    steps, span = len(rows) - 1, (most - least) or 1
    placed = [
        (
            round(_EDGE + (WIDTH - 2 * _EDGE) * n / steps, 1),
            round(HEIGHT - _EDGE - (HEIGHT - 2 * _EDGE) * (got - least) / span, 1),
            bad,
        )
        for n, got, bad in points
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
