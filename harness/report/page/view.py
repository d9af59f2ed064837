"""What the page of a night shows, as plain data; the template only draws it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.config.figures import figure
from harness.core.verdict import Word
from harness.nightly.history.compare import FirstBad, Standing, State, first_bad, standings
from harness.nightly.history.model import Difference, Excluded, Night, Row, last_tries
from harness.nightly.history.store import History
from harness.report.history import in_order, reproducing
from harness.report.page.causes import Failure, Group, changed_inputs, grouped

NIGHTS = 30  # of trends
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
class CaseView:
    """``anchor``: its place on the page. ``tries``: verdicts of all tries when there are two."""

    anchor: str
    standing: Standing
    since: FirstBad | None
    lines: tuple[Line, ...]
    deltas: tuple[Delta, ...]
    trends: tuple[Trend, ...]
    command: str

    @property
    def case(self) -> str:
        return self.standing.case

    @property
    def state(self) -> State:
        return self.standing.state

    @property
    def sign(self) -> Sign:
        return Sign[self.state.name]

    @property
    def key(self) -> str:
        """The state, for a style sheet."""
        return self.state.name.lower()

    @property
    def row(self) -> Row | None:
        return self.standing.row

    @property
    def changed(self) -> tuple[Difference, ...]:
        """Inputs before what follows from them."""
        return () if self.since is None else tuple(in_order(self.since.differences))

    @property
    def marked(self) -> bool:
        """Whether the cause names a line of the console."""
        return any(line.marked for line in self.lines)

    @property
    def words(self) -> str:
        """What a search finds it by."""
        row = self.row
        of_row = (
            () if row is None else (row.verdict, row.owner, row.cause.kind if row.cause else "")
        )
        return " ".join(map(str, (self.case, self.state, *of_row))).lower()


@dataclass(frozen=True)
class GroupView:
    """``changed``: inputs that are others for all of them since they last passed."""

    what: str
    why: str
    cases: tuple[CaseView, ...]
    changed: tuple[Difference, ...]


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
    groups: tuple[GroupView, ...]
    matrix: Matrix
    ended: bool
    excluded: tuple[Excluded, ...]

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
    nights = _up_to(history, night)
    order = {each.id: number for number, each in enumerate(reversed(nights))}
    by_case = _by_case(history.rows(list({*order, night.id})), order)
    shown = [s for s in standings(history, night) if only is None or s.case in only]
    cases = tuple(_view(n, s, by_case.get(s.case, ())) for n, s in enumerate(shown))
    count = Counter(case.state for case in cases)
    earlier = next((each for each in nights if each.id != night.id), None)
    return Page(
        night=night,
        earlier=earlier,
        cases=cases,
        counts=tuple((s, Sign[s.name], count[s]) for s in State if count[s]),
        groups=tuple(_groups(cases)),
        matrix=_matrix(cases),
        ended=history.ended(night),
        excluded=night.excluded,
    )


def _up_to(history: History, night: Night) -> list[Night]:
    """The last nights of the suite up to this one, the newest first."""
    newest = history.nights(suite=night.suite, most=NIGHTS)
    if all(each.id != night.id for each in newest):
        newest = [n for n in history.nights(suite=night.suite) if n.began <= night.began]
    return [each for each in newest if each.began <= night.began][:NIGHTS]


def _by_case(rows: Iterable[Row], order: Mapping[str, int]) -> dict[str, tuple[Row, ...]]:
    """The last tries of each case, one a night, the oldest first."""
    nights: dict[str, list[Row]] = {}
    for row in rows:
        nights.setdefault(row.night, []).append(row)
    cases: dict[str, list[Row]] = {}
    for name in sorted(nights, key=lambda name: order.get(name, len(order))):
        for case, row in last_tries(nights[name]).items():
            cases.setdefault(case, []).append(row)
    return {case: tuple(tries) for case, tries in cases.items()}


def _view(number: int, standing: Standing, rows: Sequence[Row]) -> CaseView:
    row = standing.row
    failing = row is not None and row.bad
    return CaseView(
        anchor=f"case-{number}",
        standing=standing,
        since=first_bad(standing.case, rows) if failing else None,
        lines=_lines(row),
        deltas=_deltas(standing),
        trends=trends(rows),
        command="" if row is None else reproducing(row),
    )


def _lines(row: Row | None) -> tuple[Line, ...]:
    if row is None or row.excerpt is None:
        return ()
    marked = None if row.cause is None else row.cause.line
    numbered = enumerate(row.excerpt.lines, row.excerpt.first)
    return tuple(Line(number, text, number == marked) for number, text in numbered)


def _deltas(standing: Standing) -> tuple[Delta, ...]:
    """The largest first, of what budgets may limit."""
    if standing.row is None or standing.before is None:
        return ()
    before, after = standing.before.metrics, standing.row.metrics
    both = (name for name in after if name in before and figure(name).accepted)
    deltas = [Delta(name, before[name], after[name]) for name in both]
    changed = sorted((d for d in deltas if d.change), key=lambda d: (-abs(d.change), d.name))
    return tuple(changed[:_MOST_DELTAS])


def _groups(cases: Sequence[CaseView]) -> list[GroupView]:
    failing = {case.case: case for case in cases if case.state in _FAILING}
    failures = [Failure(c.row, c.since) for c in failing.values() if c.row is not None]
    passed = [case.row for case in cases if case.row is not None and case.row.good]
    return [_group(group, failing) for group in grouped(failures, passed)]


def _group(group: Group, failing: Mapping[str, CaseView]) -> GroupView:
    cases = [failing[failure.row.case] for failure in group.failures]
    new_first = sorted(cases, key=lambda case: case.state is not State.NEW)
    every = [set(changed_inputs(failure)) for failure in group.failures]
    shared = in_order(set.intersection(*every))
    return GroupView(group.what, group.why, tuple(new_first), tuple(shared))


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
