"""Compares how accurate a program is with its budgets and with what was accepted. Pure.

The figures are those of ``harness.export.child.accuracy``: the program against the float model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.config.budgets import Budgets
from harness.export.program import OutputAccuracy, Witnessed

# Beyond these an output is noted. At 10 dB the noise has a third of the output's amplitude.
LOW_DB = 10.0
MUCH_CLIPPED = 0.1
_ADVICE = "calibrate with inputs that span what the model sees, with features of one range"
_TITLES = {"sqnr_db": "SQNR in dB", "top1": "top-1 agreement"}


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


def describe(accuracy: OutputAccuracy) -> str:
    """ "output0 has an SQNR of 38.1 dB, top-1 0.97, 0.2 % clipped, over 100 samples"."""
    top1 = "" if accuracy.top1 is None else f", top-1 {accuracy.top1:.3g}"
    clipped = "" if accuracy.clipped is None else f", {accuracy.clipped * 100:.3g} % clipped"
    figures = f"{accuracy.sqnr_db:.4g} dB{top1}{clipped}, over {accuracy.samples} samples"
    return f"{accuracy.output} has an SQNR of {figures}"


def accuracy_notes(
    measured: Sequence[OutputAccuracy], witness: Witnessed | None, budgets: Budgets
) -> list[str]:
    """Note on a low accuracy, and on figures that could not be compared."""
    notes = [f"low accuracy: {describe(each)}; {_ADVICE}" for each in measured if is_low(each)]
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
