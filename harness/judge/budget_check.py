"""Checks figures against what was accepted and against hard limits. Pure.

The slack is counted from the accepted figure, never from the last run, so small steps cannot
add up beyond it. The accuracy is a figure, too, the program against the float model
(``harness.export.child.accuracy``): it must not fall.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.config.budgets import Budgets
from harness.config.figures import MeasuredIn, figure, gated_figures
from harness.core.verdict import Word
from harness.export.program import OutputAccuracy, Witnessed

# Beyond these an output is noted. At 10 dB the noise has a third of the output's amplitude.
LOW_DB = 10.0
MUCH_CLIPPED = 0.1
_ADVICE = "calibrate with inputs that span what the model sees, with features of one range"
_TITLES = {"sqnr_db": "SQNR in dB", "top1": "top-1 agreement"}


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


@dataclass(frozen=True)
class Shortfall:
    """A figure of an output that is too low.

    ``measured``: None if only the accepted program has it; ``accepted``: None for a budget."""

    output: str
    figure: str
    measured: float | None
    accepted: float | None
    least: float

    def describe(self) -> str:
        now = "unknown" if self.measured is None else f"{self.measured:.4g}"
        change, why = f"is {now}", f"the budget min_{self.figure} is"
        if self.accepted is not None:
            change, why = f"went from {self.accepted:.4g} to {now}", "its slack allows down to"
        title = f"{_TITLES[self.figure]} of {self.output}, against the float model,"
        return f"the {title} {change}; {why} {self.least:.4g}"


def check_accuracy(
    measured: Sequence[OutputAccuracy], accepted: Sequence[OutputAccuracy], budgets: Budgets
) -> tuple[Shortfall, ...]:
    """Figures below a budget; if there are none, those that fell too far below an accepted one."""
    below = [
        Shortfall(each.output, name, value, None, least)
        for each in measured
        for name, least in budgets.least_accuracy.items()
        if (value := getattr(each, name)) is not None and value < least
    ]
    return tuple(below or _drops({each.output: each for each in measured}, accepted, budgets))


def _drops(
    measured: dict[str, OutputAccuracy], accepted: Sequence[OutputAccuracy], budgets: Budgets
) -> Iterator[Shortfall]:
    for before in accepted:
        now = measured.get(before.output)
        one = 1 / min(before.samples, now.samples if now else before.samples)
        # One sample whose two largest elements are close decides nothing.
        slacks = {"sqnr_db": budgets.slack_sqnr_db, "top1": max(budgets.slack_top1, one)}
        for name, slack in slacks.items():
            was, value = getattr(before, name), getattr(now, name, None)
            if was is None:
                continue
            least = round(was - slack, 4)  # as the figures are
            if value is None or value < least:
                yield Shortfall(before.output, name, value, was, least)


def is_low(accuracy: OutputAccuracy) -> bool:
    return accuracy.sqnr_db < LOW_DB or (accuracy.clipped or 0) > MUCH_CLIPPED


def describe_accuracy(accuracy: OutputAccuracy) -> str:
    """ "output0 has an SQNR of 38.1 dB, top-1 0.97, 0.2 % clipped, over 100 samples"."""
    top1 = "" if accuracy.top1 is None else f", top-1 {accuracy.top1:.3g}"
    clipped = "" if accuracy.clipped is None else f", {accuracy.clipped * 100:.3g} % clipped"
    figures = f"{accuracy.sqnr_db:.4g} dB{top1}{clipped}, over {accuracy.samples} samples"
    return f"{accuracy.output} has an SQNR of {figures}"


def accuracy_notes(
    measured: Sequence[OutputAccuracy], witness: Witnessed | None, budgets: Budgets
) -> list[str]:
    """Note on a low accuracy, and on figures that could not be compared."""
    low = map(describe_accuracy, filter(is_low, measured))
    notes = [f"low accuracy: {text}; {_ADVICE}" for text in low]
    for name in budgets.least_accuracy:
        if all(getattr(each, name) is None for each in measured):
            notes.append(f"min_{name} was not checked: no output has a {_TITLES[name]}")
    if witness is not None and witness.values and not witness.paired:
        notes.append(describe_witness(witness))
    return notes


def describe_witness(witness: Witnessed) -> str:
    """How much of the quantised model was compared with the program."""
    paired = f"{witness.paired} values of the quantised model differ by {witness.worst} LSB at most"
    missing = witness.values - witness.paired
    if not missing:
        return f"all {paired} from the program's"
    how = paired if witness.paired else "outputs were compared as a whole"
    return f"{missing} of {witness.values} values could not be paired with the program's; {how}"
