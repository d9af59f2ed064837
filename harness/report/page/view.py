"""What the page of a night shows, as plain data; the template only draws it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.config.figures import figure
from harness.core.verdict import Word
from harness.nightly.history.compare import Standing, State, standings
from harness.nightly.history.model import Difference, Night, Row
from harness.nightly.history.store import History
from harness.report.history import in_order, reproducing
from harness.report.page.groups import Group, grouped

_MOST_DELTAS = 8
_FAILING = (State.NEW, State.STILL)


class Sign(Word):
    """A state without its colour."""

    NEW = "✗"
    STILL = "✖"
    FIXED = "✓+"
    PASSING = "✓"
    QUARANTINED = "Q"
    INFRA = "!"
    SKIPPED = "-"
    MISSING = "?"


@dataclass(frozen=True)
class Delta:
    """A figure that differs from the last run that says something of the product."""

    name: str
    before: int
    after: int

    @property
    def change(self) -> int:
        return self.after - self.before


@dataclass(frozen=True)
class Line:
    """Of a console. ``marked``: the cause names it."""

    number: int
    text: str
    marked: bool


@dataclass(frozen=True)
class CaseView(Standing):
    """``anchor``: its place on the page."""

    anchor: str = ""

    @property
    def sign(self) -> Sign:
        return Sign[self.state.name]

    @property
    def key(self) -> str:
        """The state, for a style sheet."""
        return self.state.name.lower()

    @property
    def changed(self) -> list[Difference]:
        """Inputs before what follows from them."""
        return [] if self.since is None else in_order(self.since.differences)

    @property
    def lines(self) -> list[Line]:
        """Of the console."""
        row = self.row
        if row is None or row.excerpt is None:
            return []
        marked = None if row.cause is None else row.cause.line
        numbered = enumerate(row.excerpt.lines, row.excerpt.first)
        return [Line(number, text, number == marked) for number, text in numbered]

    @property
    def marked(self) -> bool:
        """Whether the cause names a line of the console."""
        return any(line.marked for line in self.lines)

    @property
    def deltas(self) -> list[Delta]:
        """The largest first, of what budgets may limit."""
        if self.row is None or self.baseline is None:
            return []
        before, after = self.baseline.metrics, self.row.metrics
        both = (name for name in after if name in before and figure(name).accepted)
        deltas = [Delta(name, before[name], after[name]) for name in both]
        changed = sorted((d for d in deltas if d.change), key=lambda d: (-abs(d.change), d.name))
        return changed[:_MOST_DELTAS]

    @cached_property
    def trends(self) -> tuple[Trend, ...]:
        return trends((*self.earlier, *([] if self.row is None else [self.row])))

    @property
    def command(self) -> str:
        return "" if self.row is None else reproducing(self.row)

    @property
    def words(self) -> str:
        """What a search finds it by."""
        row = self.row
        of_row = (
            () if row is None else (row.verdict, row.owner, row.cause.kind if row.cause else "")
        )
        return " ".join(map(str, (self.case, self.state, *of_row))).lower()


@dataclass(frozen=True)
class Matrix:
    """Cells by (target, model): a target may have a model with more than one firmware."""

    models: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[CaseView, ...], ...]], ...]


@dataclass(frozen=True)
class Page:
    """``counts``: of every state that has a case. ``earlier``: the night before of the suite, None
    for the first."""

    night: Night
    earlier: Night | None
    cases: tuple[CaseView, ...]
    counts: tuple[tuple[State, Sign, int], ...]
    groups: tuple[Group[CaseView], ...]
    matrix: Matrix
    ended: bool

    def of(self, *names: str) -> tuple[CaseView, ...]:
        """The cases of some states, by the names of the states."""
        return tuple(case for case in self.cases if case.state.name in names)

    @property
    def verdict(self) -> str:
        """The night in one sentence."""
        number = {state: count for state, _, count in self.counts}
        failing = sum(number.get(state, 0) for state in _FAILING)
        new = number.get(State.NEW, 0)
        text = f"{new} new failure{'' if new == 1 else 's'}" if failing else "no failures"
        if still := number.get(State.STILL, 0):
            text += f", {still} still failing"
        if unknown := number.get(State.INFRA, 0) + number.get(State.MISSING, 0):
            text += f"; of {unknown} nothing is known"
        return text


def page_of(history: History, night: Night, only: Collection[str] | None = None) -> Page:
    """``only``: these cases instead of all that were planned. Raises HistoryUnreachable."""
    shown = [s for s in standings(history, night) if only is None or s.case in only]
    cases = tuple(
        CaseView(each.case, each.tries, each.earlier, f"case-{n}") for n, each in enumerate(shown)
    )
    count = Counter(case.state for case in cases)
    failing = [case for case in cases if case.state in _FAILING]
    passed = [case.row for case in cases if case.row is not None and case.row.good]
    nights = history.nights(suite=night.suite, until=night.began, most=2)
    return Page(
        night=night,
        earlier=next((each for each in nights if each.id != night.id), None),
        cases=cases,
        counts=tuple((s, Sign[s.name], count[s]) for s in State if count[s]),
        groups=tuple(grouped(failing, passed)),
        matrix=_matrix(cases),
        ended=history.ended(night),
    )


def _matrix(cases: Sequence[CaseView]) -> Matrix:
    cells: dict[tuple[str, str], list[CaseView]] = {}
    for case in cases:
        cells.setdefault(_place(case), []).append(case)
    targets = dict.fromkeys(target for target, _ in cells)
    models = tuple(dict.fromkeys(model for _, model in cells))
    rows = (
        (target, tuple(tuple(cells.get((target, model), ())) for model in models))
        for target in targets
    )
    return Matrix(models, tuple(rows))


def _place(case: CaseView) -> tuple[str, str]:
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
