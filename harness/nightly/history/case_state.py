"""Compares a case with the nights before: whether it is new, since when it fails, what changed.

A regression is a case and a cause: if two bad nights in a row have different causes, the second is
a regression of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.config.figures import figure
from harness.core.judgement import Reason
from harness.core.verdict import Verdict, Word
from harness.judge.program_contents import outline_difference
from harness.nightly.history.nights import InputDifference, Row, changes
from harness.nightly.history.steps import Step, steps_of

_COMMIT = re.compile(r"[0-9a-f]{40}")
_FAILURE, _ERROR, _SKIPPED = "failure", "error", "skipped"


class CaseState(Word):
    """A case of a night, compared with the nights before.

    ``sign``: it without its colour; ``style``: of a terminal; ``junit``: the element of a test
    case, "" for none."""

    sign: str
    style: str
    junit: str

    def __new__(cls, word: str, sign: str, style: str, junit: str) -> CaseState:
        member = str.__new__(cls, word)
        member._value_ = word
        member.sign, member.style, member.junit = sign, style, junit
        return member

    # fails, and passed before, was never run, or never counted (a quarantine)
    NEW = "new", "✗", "bold red", _FAILURE
    CHANGED = "changed", "✗≠", "bold red", _FAILURE  # failed before, of another cause
    LOST = "gone while it failed", "✗∅", "bold red", _FAILURE
    STILL = "still failing", "✖", "red", _FAILURE
    INFRA = "infrastructure", "!", "magenta", _ERROR  # says nothing of the product
    MISSING = "missing", "?", "magenta", _ERROR  # planned, and has no row
    QUARANTINED = "quarantined", "Q", "yellow", _SKIPPED  # fails, and that does not count
    GONE = "gone", "∅", "yellow", _SKIPPED  # was in the night before, and is not in the suite
    FIXED = "fixed", "✓+", "green", ""
    SKIPPED = "skipped", "-", "blue", _SKIPPED
    PASSING = "passing", "✓", "green", ""

    @property
    def failing(self) -> bool:
        return self.junit == _FAILURE

    @property
    def is_new(self) -> bool:
        return self.failing and self is not CaseState.STILL


# The states of a case without a row.
NO_ROW = {
    CaseState.MISSING: "planned, and there is no result of it",
    CaseState.LOST: "it failed in the night before, is not in the suite, and nobody renamed it",
    CaseState.GONE: "it was in the night before, and is not in the suite",
}


@dataclass(frozen=True)
class Delta:
    """A figure that differs from the last run that says something of the product."""

    name: str
    before: int
    after: int

    @property
    def change(self) -> int:
        return self.after - self.before

    @property
    def relative_change(self) -> float:
        return self.change / self.before if self.before else float("inf")

    def __str__(self) -> str:
        part = f", {self.relative_change:+,.1%}" if self.before else ""
        return f"{self.name} {self.before:,} -> {self.after:,} ({self.change:+,}{part})"


def deltas_of(before: Row | None, after: Row | None) -> list[Delta]:
    """Return the changes of instructions and budgeted figures; the largest ratio first."""
    if before is None or after is None:
        return []
    names = (n for n in after.metrics if figure(n).gated or n.startswith("ticks_set"))
    both = (Delta(n, before.metrics[n], after.metrics[n]) for n in names if n in before.metrics)
    return sorted((d for d in both if d.change), key=lambda d: (-abs(d.relative_change), d.name))


def drift_of(before: Row | None, row: Row | None) -> str:
    """Return how a model of the same file became another program; "" where it did not.

    Also where the model may be another."""
    if before is None or row is None:
        return ""
    of_both = (before.identity.program, row.identity.program)
    same_model = row.model_source and row.model_source == before.model_source
    if not all(of_both) or of_both[0] == of_both[1] or not same_model:
        return ""
    packages = (d for d in changes([before], row) if d.what in row.versions)
    by = ", ".join(f"{d.what} {d.before} -> {d.after}" for d in packages)
    contents = "not known, its operators were not kept"
    if before.outline and row.outline:
        contents = str(outline_difference(before.outline, row.outline))
    return f"same model, other program: {by or 'with the same exporter'}; what changed: {contents}"


@dataclass(frozen=True)
class FirstBad:
    """The last time that a case began to fail of a cause.

    ``last_good``: None if it never passed before; ``before``: the runs from that one to the first,
    or all if there is none; ``fixed``: the first good run after it, None while it fails;
    ``bad_runs``: of that cause; ``unsure``: how many runs of ``before`` say nothing of the product.
    """

    first: Row
    last_good: Row | None
    before: tuple[Row, ...]
    fixed: Row | None
    bad_runs: int

    @property
    def unsure(self) -> int:
        return sum(not (row.good or row.bad) for row in self.before)

    @cached_property
    def differences(self) -> list[InputDifference]:
        return changes(self.before, self.first)

    @property
    def commits(self) -> tuple[str, str] | None:
        """Good and bad of a checkout, as `hil bisect` takes them; None where they are not known."""
        sources = next((each for each in self.differences if each.what == "sources"), None)
        if sources is None or not _COMMIT.fullmatch(sources.before):
            return None
        return (sources.before, sources.after) if _COMMIT.fullmatch(sources.after) else None


def first_bad(rows: Sequence[Row], cause: str = "") -> FirstBad | None:
    """Find when a case began to fail; None if it never failed so.

    ``rows`` of one case, the oldest first; ``cause``: a verdict, a kind or words of a cause
    (without it the last one)."""
    by_night: dict[str, Row] = {}
    for row in rows:
        kept = by_night.setdefault(row.night, row)
        by_night[row.night] = max(kept, row, key=lambda row: row.attempt)
    nightly = list(by_night.values())
    ends = (i for i in reversed(range(len(nightly))) if _is_of(nightly[i], cause))
    if (end := next(ends, None)) is None:
        return None
    last_good = next((i for i in reversed(range(end)) if nightly[i].good), None)
    start = 0 if last_good is None else last_good
    fault = nightly[end].fault
    alike = [i for i in range(start, end + 1) if nightly[i].bad and nightly[i].fault == fault]
    return FirstBad(
        first=nightly[alike[0]],
        last_good=None if last_good is None else nightly[last_good],
        before=tuple(nightly[start : alike[0]]),
        fixed=next((row for row in nightly[end:] if row.good), None),
        bad_runs=len(alike),
    )


def _is_of(row: Row, cause: str) -> bool:
    words = "" if row.cause is None else f" {row.cause.kind}: {row.cause.text}"
    return row.bad and cause in f"{row.verdict}{words}"


@dataclass(frozen=True)
class Standing:
    """A case of a night.

    ``tries``: of this night; ``earlier``: the row that counts of each night before that it is
    compared with, the oldest first; ``planned``: the night has it; ``culprit``: what bisecting
    found."""

    case: str
    tries: tuple[Row, ...] = ()
    earlier: tuple[Row, ...] = ()
    planned: bool = True
    culprit: str = ""

    @property
    def row(self) -> Row | None:
        """The one that counts: the last try. None if the case is missing."""
        return max(self.tries, key=lambda row: row.attempt, default=None)

    @property
    def seconds(self) -> float:
        return 0.0 if self.row is None else self.row.seconds.get("total", 0.0)

    @property
    def baseline(self) -> Row | None:
        """Return the last earlier row that says something of the product.

        The case is compared with it. Neither INFRA nor SKIPPED says anything."""
        return next((row for row in reversed(self.earlier) if row.good or row.bad), None)

    @cached_property
    def state(self) -> CaseState:
        row, baseline = self.row, self.baseline
        was_bad = baseline is not None and baseline.bad
        if not self.planned:
            counted = was_bad and baseline is not None and not baseline.quarantined
            return CaseState.LOST if counted else CaseState.GONE
        if row is None:
            return CaseState.MISSING
        if row.verdict is Verdict.INFRA:
            return CaseState.INFRA
        if row.verdict is Verdict.SKIPPED:
            return CaseState.SKIPPED
        if row.good:
            return CaseState.FIXED if was_bad else CaseState.PASSING
        if row.quarantined:
            return CaseState.QUARANTINED
        if not was_bad:
            return CaseState.NEW
        assert self.since is not None  # the row is bad
        first = self.since.first
        if first is row:
            return CaseState.CHANGED
        before = (r for r in self.earlier if r.time >= first.time and r.bad)
        return CaseState.NEW if all(r.quarantined for r in before) else CaseState.STILL

    @cached_property
    def since(self) -> FirstBad | None:
        """Since when the case fails of this cause; None if it does not fail."""
        row = self.row
        return None if row is None or not row.bad else first_bad((*self.earlier, row))

    @cached_property
    def flaky(self) -> str:
        """Return how often equal runs before ended otherwise; "" if none did.

        An alarm is of many runs."""
        row = self.row
        if row is None or not row.bad or not row.identity.firmware or row.kind[1] == Reason.ALARM:
            return ""
        product = row.identity.of_product
        definite = [r for r in self.earlier if r.good or r.bad]
        alike = [r for r in definite if r.identity.of_product == product]
        other = sum(r.fault != row.fault for r in alike)
        return f"flaky: {other} of {len(alike)} equal runs ended otherwise" if other else ""

    @cached_property
    def changed(self) -> list[InputDifference]:
        """Inputs that are others since the case failed of this cause."""
        return [] if self.since is None else self.since.differences

    @cached_property
    def drift(self) -> str:
        """``drift_of`` its baseline. Reported before sizes and outputs, which follow from it."""
        return drift_of(self.baseline, self.row)

    @cached_property
    def deltas(self) -> list[Delta]:
        return deltas_of(self.baseline, self.row)

    @cached_property
    def steps(self) -> list[Step]:
        """The steps of its figures over the nights, the oldest first."""
        return steps_of([*self.earlier, *([] if self.row is None else [self.row])])


@dataclass(frozen=True)
class Flaky:
    """The different ends of a case in ``runs`` with the same inputs.

    These are program, firmware, toolchain, simulator, target and reference. ``outputs``: how many
    different ones; ``rescued``: how often a second try was not INFRA."""

    case: str
    runs: int
    verdicts: Counter[str]
    outputs: int
    rescued: int

    @property
    def score(self) -> float:
        """The part of the runs that ended as the fewest did."""
        return min(self.verdicts.values()) / self.runs


def flaky(rows: Iterable[Row]) -> list[Flaky]:
    """Return the flaky cases, the worst first. Unknown firmware is never the same."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row.identity.firmware and row.identity.program:
            groups.setdefault((row.case, *row.identity.of_product), []).append(row)
    found: list[Flaky] = []
    for (case, *_), alike in groups.items():
        definite = [row for row in alike if row.good or row.bad]  # INFRA says nothing of a case
        outputs = len({row.output for row in definite if row.output})
        rescued = sum(row.attempt > 1 and row.verdict is not Verdict.INFRA for row in alike)
        if len({row.verdict for row in definite}) > 1 or outputs > 1 or rescued:
            verdicts = Counter(str(row.verdict) for row in alike)
            found.append(Flaky(case, len(alike), verdicts, outputs, rescued))
    return sorted(found, key=lambda case: (-case.score, case.case))
