"""Steps of a case's figures over nights: where a figure changes and stays.

The change points minimise the squared error plus a price per point (optimal partitioning; Jackson
et al., 2005). A value of a single night is not a step; of the last night nobody knows yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from statistics import median, median_low

from harness.core.judgement import Cause, Reason
from harness.core.verdict import Verdict
from harness.nightly.history.nights import InputDifference, Row, causes, changes

_TOLD = 0.01  # by which part a level has to be another
_RESOLUTION = 0.001  # of a figure: what is smaller is noise, however quiet the other nights were
_DEVIATIONS = 4.0  # of the noise, that one night has to differ by
_MEASURED = (Verdict.PASS, Verdict.MISMATCH, Verdict.OVER_BUDGET)  # it ran to its end


@dataclass(frozen=True)
class Watched:
    """A figure that is followed over nights.

    ``name``: in a suite's ``alarm``, and in sentences; ``title``: of its plot; ``metric``: of a
    row."""

    name: str
    title: str
    unit: str
    metric: str


WATCHED = (
    Watched("pte", "size of the .pte", "bytes", "pte_bytes"),
    Watched("text", "code", "bytes", "elf_text"),
    Watched("instructions", "instructions", "ticks", "ticks_set0"),
    Watched("planned", "planned memory", "bytes", "method_allocator_planned"),
    Watched("stack", "stack", "bytes", "stack_high_water"),
    Watched("npu", "Vela's estimate of the NPU", "cycles", "npu_cycles_estimated"),
)


@dataclass(frozen=True)
class Step:
    """A step of a figure from one level to another.

    ``before`` and ``after``: the levels, medians; ``last``: the last row of the one, ``rows``:
    those of the other, up to now or to the next step."""

    figure: Watched
    before: float
    after: float
    last: Row
    rows: tuple[Row, ...]

    @property
    def first(self) -> Row:
        return self.rows[0]

    @property
    def relative_change(self) -> float:
        return (self.after - self.before) / self.before if self.before else float("inf")

    @cached_property
    def differences(self) -> list[InputDifference]:
        """Inputs that changed with it, without what is made of the others."""
        return causes(changes([self.last], self.first))

    def __str__(self) -> str:
        levels = f"{self.before:,.0f} -> {self.after:,.0f} ({self.relative_change:+,.1%})"
        return f"{self.figure.name} {levels} since the night {self.first.night}"


def steps_of(rows: Sequence[Row]) -> list[Step]:
    """Return the steps of all figures, oldest first. ``rows``: of one case, one per night."""
    found = [step for figure in WATCHED for step in _steps(figure, rows, _TOLD)]
    return sorted((s for s in found if abs(s.relative_change) >= _TOLD), key=lambda s: s.first.time)


def with_alarms(rows: Sequence[Row], alarms: Mapping[str, float]) -> list[Row]:
    """Return the rows, OVER_BUDGET if they pass and have a figure beyond its alarm.

    It is on a level by more than that part above where it was when the reference became what it is.
    """
    changed = list(rows)
    for figure in (each for each in WATCHED if each.name in alarms):
        for number in (len(rows) - 1, len(rows)):  # what was beyond it in the night before, too
            beyond, cause = _beyond(figure, rows[:number], alarms[figure.name])
            for index in beyond:
                if changed[index].good:
                    changed[index] = replace(rows[index], verdict=Verdict.OVER_BUDGET, cause=cause)
    return changed


def _beyond(
    figure: Watched, rows: Sequence[Row], most: float
) -> tuple[Sequence[int], Cause | None]:
    if not rows:
        return (), None
    now = rows[-1].identity.reference
    start = next((i for i in range(len(rows))[::-1] if rows[i].identity.reference != now), -1) + 1
    steps = _steps(figure, rows[start:], most)
    above = [step for step in steps if step.after > steps[0].before * (1 + most)]
    if not above or above[-1] is not steps[-1]:
        return (), None
    first = next(s for n, s in enumerate(steps) if all(each in above for each in steps[n:]))
    whole = replace(first, before=steps[0].before, after=steps[-1].after)
    text = f"{whole}; the suite's alarm is {most * 100:g}%"
    place = next(index for index, row in enumerate(rows) if row is first.first)
    facts = {"figure": figure.metric, "before": whole.before, "after": whole.after}
    return range(place, len(rows)), Cause(Reason.ALARM, text, None, facts)


def _steps(figure: Watched, rows: Sequence[Row], least: float) -> list[Step]:
    """Those that may be larger than ``least``, and all others if there is one."""
    measured = [r for r in rows if r.verdict in _MEASURED and figure.metric in r.metrics]
    values = [row.metrics[figure.metric] for row in measured]
    if not values or max(values) <= min(values) * (1 + least):
        return []
    while len(levels := _levels(values)) > 1:
        alone = [start for start, end in levels[1:-1] if end - start == 1]
        if not alone:
            break
        measured = [row for number, row in enumerate(measured) if number not in alone]
        values = [row.metrics[figure.metric] for row in measured]
    return [
        Step(
            figure,
            median(values[slice(*before)]),
            median(values[slice(*after)]),
            measured[after[0] - 1],
            tuple(measured[slice(*after)]),
        )
        for before, after in pairwise(levels)
    ]


def _levels(values: Sequence[float]) -> list[tuple[int, int]]:
    """Return where each level begins and ends.

    The partition has the least squared distance from the levels' means, and a price for each level.
    Tests compare it with the library `ruptures`, whose import takes longer than a page."""
    noise = median_low(abs(b - a) for a, b in pairwise(values)) * 1.4826 / 2**0.5  # a deviation
    noise = max(noise, median(map(abs, values)) * _RESOLUTION, 1e-9)
    price = (_DEVIATIONS * noise) ** 2
    sums = list(accumulate(values, initial=0))
    squares = list(accumulate((value**2 for value in values), initial=0))
    least: list[float] = [0]  # the cost of the first values, by how many
    begins: list[int] = []  # of the last level of the first values
    for end in range(1, len(values) + 1):
        costs = [
            least[begin]
            + price
            + (squares[end] - squares[begin])
            - (sums[end] - sums[begin]) ** 2 / (end - begin)
            for begin in range(end)
        ]
        begins.append(costs.index(min(costs)))
        least.append(min(costs))
    ends = [len(values)]
    while ends[0]:
        ends.insert(0, begins[ends[0] - 1])
    return list(pairwise(ends))
