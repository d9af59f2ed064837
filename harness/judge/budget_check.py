"""Checks figures against what was accepted and against hard limits. Pure.

The slack is counted from the accepted figure, never from the last run, so small steps cannot
add up beyond it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.config.budgets import Budgets
from harness.config.figures import MeasuredIn, figure, gated_figures
from harness.core.verdict import Word


class FigureState(Word):
    """The state of a figure. ``failed``: it must not stay so."""

    OK = "ok"
    SHRANK = "shrank"  # accept it to keep the gain
    NEW = "new"  # nothing accepted yet
    GROWN = "grown"  # over the ratchet
    OVER_LIMIT = "over_limit"  # over the hard limit
    NOT_MEASURED = "not_measured"

    @property
    def failed(self) -> bool:
        return self in (FigureState.GROWN, FigureState.OVER_LIMIT, FigureState.NOT_MEASURED)


@dataclass(frozen=True)
class CheckedFigure:
    """The result for one figure, in its unit. ``limit``: its maximum."""

    figure: str
    state: FigureState
    measured: int | None
    accepted: int | None = None
    limit: int | None = None

    @property
    def failed(self) -> bool:
        return self.state.failed

    @property
    def growth(self) -> int:
        return (self.measured or 0) - (self.accepted or 0)

    def describe(self) -> str:
        unit = figure(self.figure).unit
        if self.state is FigureState.NOT_MEASURED:
            return f"{self.figure} could not be measured, so nothing is known about it"
        if self.state is FigureState.OVER_LIMIT:
            over = (self.measured or 0) - (self.limit or 0)
            return f"{self.figure} is {self.measured} {unit}, {over} over its limit of {self.limit}"
        if self.accepted is None:
            return f"{self.figure} is {self.measured} {unit}; nothing is accepted yet"
        what = "grew" if self.growth > 0 else "went"
        return (
            f"{self.figure} {what} from {self.accepted} to {self.measured} {unit} "
            f"({self.growth:+d}, allowed up to {self.limit})"
        )


def check(
    stages: Iterable[MeasuredIn],
    figures: Mapping[str, int],
    accepted: Mapping[str, int],
    budgets: Budgets,
) -> tuple[CheckedFigure, ...]:
    """One answer per figure of these stages that was measured, accepted or limited, by name.

    A figure that is accepted or limited but was not measured is a failure. Figures of other stages
    and those that are never accepted (time, the size of a pool) are left out.
    """
    wanted = frozenset(stages)
    measured, before, limits = (
        gated_figures(values, wanted) for values in (figures, accepted, budgets.limits)
    )
    return tuple(
        _check_one(name, measured.get(name), before.get(name), limits.get(name), budgets)
        for name in sorted({*measured, *before, *limits})
    )


def _check_one(
    name: str, measured: int | None, accepted: int | None, hard: int | None, budgets: Budgets
) -> CheckedFigure:
    if measured is None:
        return CheckedFigure(name, FigureState.NOT_MEASURED, None, accepted, hard)
    if hard is not None and measured > hard:
        return CheckedFigure(name, FigureState.OVER_LIMIT, measured, accepted, hard)
    if accepted is None:
        return CheckedFigure(name, FigureState.NEW, measured, None, hard)
    limit = budgets.slacks.get(name, budgets.slack).limit(accepted)
    if measured > limit:
        return CheckedFigure(name, FigureState.GROWN, measured, accepted, limit)
    saved = accepted - measured > limit - accepted
    return CheckedFigure(
        name, FigureState.SHRANK if saved else FigureState.OK, measured, accepted, limit
    )
