"""What is new in a night, since when a case fails, and what changed between two of its runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from harness.core.verdict import ExitCode, Verdict, Word, exit_code
from harness.judge.program_contents import outline_difference
from harness.nightly.history.model import Difference, Night, Row, last_tries

if TYPE_CHECKING:
    from harness.nightly.history.store import History  # imports SQLAlchemy


NIGHTS = 30  # of a suite before, that a night is compared with


class State(Word):
    """A case of a night, compared with the nights before."""

    NEW = "new"  # fails, and passed before or was never run
    STILL = "still failing"
    FIXED = "fixed"
    PASSING = "passing"
    QUARANTINED = "quarantined"  # fails, and that does not count
    INFRA = "infrastructure"  # says nothing of the product
    SKIPPED = "skipped"
    MISSING = "missing"  # planned, and has no row


@dataclass(frozen=True)
class Drift:
    """A model whose file is the same became another program. ``versions``: what exported it, where
    that changed; ``program``: its operators that changed, in words."""

    versions: tuple[Difference, ...]
    program: str

    def __str__(self) -> str:
        changed = [f"{v.what} {v.before or '(none)'} -> {v.after}" for v in self.versions]
        by = ", ".join(changed) or "with the same exporter"
        return f"same model, other program: {by}; what changed: {self.program}"


def drift_of(before: Row | None, row: Row | None) -> Drift | None:
    """None where the program is the same, or the model may be another."""
    if before is None or row is None or not row.identity.program or not before.identity.program:
        return None
    if row.identity.program == before.identity.program:
        return None
    if not row.model_source or row.model_source != before.model_source:
        return None
    names = sorted({*before.versions, *row.versions})
    versions = tuple(
        Difference(name, before.versions.get(name, ""), row.versions.get(name, ""))
        for name in names
        if before.versions.get(name) != row.versions.get(name)
    )
    if not before.outline or not row.outline:
        return Drift(versions, "not known, its operators were not kept")
    return Drift(versions, str(outline_difference(before.outline, row.outline)))


@dataclass(frozen=True)
class Standing:
    """A case of a night. ``tries``: of this night; ``earlier``: the row that counts of each night
    of the suite before, the oldest first."""

    case: str
    tries: tuple[Row, ...] = ()
    earlier: tuple[Row, ...] = ()

    @property
    def row(self) -> Row | None:
        """The one that counts: the last try. None if the case is missing."""
        return max(self.tries, key=lambda row: row.attempt, default=None)

    @property
    def baseline(self) -> Row | None:
        """What the case is compared with: the last earlier row that says something of the product,
        as neither INFRA nor SKIPPED does."""
        return next((row for row in reversed(self.earlier) if row.good or row.bad), None)

    @cached_property
    def state(self) -> State:
        row, baseline = self.row, self.baseline
        if row is None:
            return State.MISSING
        if row.verdict is Verdict.INFRA:
            return State.INFRA
        if row.verdict is Verdict.SKIPPED:
            return State.SKIPPED
        was_bad = baseline is not None and baseline.bad
        if row.good:
            return State.FIXED if was_bad else State.PASSING
        if row.quarantined:
            return State.QUARANTINED
        return State.STILL if was_bad else State.NEW

    @cached_property
    def since(self) -> FirstBad | None:
        """Since when the case fails; None if it does not."""
        row = self.row
        return None if row is None or not row.bad else first_bad((*self.earlier, row))

    @property
    def drift(self) -> Drift | None:
        """Reported before sizes and outputs: they follow from it."""
        return drift_of(self.baseline, self.row)


def standings(history: History, night: Night) -> list[Standing]:
    """One for every planned case, in the order of the plan."""
    before = [n.id for n in history.nights(suite=night.suite, until=night.began, most=NIGHTS + 1)]
    by_night: dict[str, list[Row]] = defaultdict(list)
    for row in history.rows([*before, night.id]):
        by_night[row.night].append(row)
    tries: dict[str, list[Row]] = {planned.case: [] for planned in night.plan}
    for row in by_night.pop(night.id, ()):
        tries.setdefault(row.case, []).append(row)
    earlier: dict[str, list[Row]] = defaultdict(list)
    for name in reversed(before):
        for case, row in last_tries(by_night[name]).items():
            earlier[case].append(row)
    return [Standing(case, tuple(own), tuple(earlier[case])) for case, own in tries.items()]


def code_of(night: Iterable[Standing]) -> ExitCode:
    """As of any run; a failure in quarantine does not count, and a missing case is INFRA."""
    cases = list(night)
    counted = [case for case in cases if case.state is not State.QUARANTINED]
    verdicts = [Verdict.INFRA if case.row is None else case.row.verdict for case in counted]
    if not verdicts:
        return ExitCode.PASSED if cases else ExitCode.FAILED
    return exit_code(verdicts)


@dataclass(frozen=True)
class FirstBad:
    """The last time that a case began to fail. ``last_good``: None if it never passed before;
    ``fixed``: the first good run after it, None while it fails. ``unsure``: how many runs between
    ``last_good`` and ``first`` say nothing of the product."""

    case: str
    first: Row
    last_good: Row | None
    fixed: Row | None
    bad_runs: int
    unsure: int

    @property
    def differences(self) -> tuple[Difference, ...]:
        if self.last_good is None:
            return ()
        return self.last_good.identity.differences(self.first.identity)

    @property
    def figures(self) -> dict[str, tuple[int, int]]:
        """The metrics that both have and that differ."""
        if self.last_good is None:
            return {}
        before, after = self.last_good.metrics, self.first.metrics
        return {
            name: (before[name], after[name])
            for name in before
            if name in after and before[name] != after[name]
        }


def first_bad(rows: Sequence[Row]) -> FirstBad | None:
    """``rows`` of one case, the oldest first. None if it never failed."""
    by_night: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_night[row.night].append(row)
    nightly = [max(tries, key=lambda row: row.attempt) for tries in by_night.values()]
    definite = [row for row in nightly if row.good or row.bad]
    end = next((i for i in reversed(range(len(definite))) if definite[i].bad), None)
    if end is None:
        return None
    start = end
    while start > 0 and definite[start - 1].bad:
        start -= 1
    last_good = definite[start - 1] if start else None
    after = 0 if last_good is None else nightly.index(last_good) + 1
    return FirstBad(
        case=definite[start].case,
        first=definite[start],
        last_good=last_good,
        fixed=definite[end + 1] if end + 1 < len(definite) else None,
        bad_runs=end - start + 1,
        unsure=nightly.index(definite[start]) - after,
    )


@dataclass(frozen=True)
class Flaky:
    """A case with different results for the same program, firmware, toolchain, simulator, target
    and reference. ``rows``: the oldest of each verdict; ``runs``: how many in all; ``outputs``:
    how many different ones; ``rescued``: how often a second try was not INFRA."""

    case: str
    runs: int
    verdicts: dict[str, int]
    outputs: int
    rescued: int
    rows: tuple[Row, ...]


def flaky(rows: Iterable[Row]) -> list[Flaky]:
    """The worst first. Unknown firmware (a build that failed) is never the same."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = (row.case, *row.identity.of_product)
        if row.identity.firmware and row.identity.program:
            groups.setdefault(key, []).append(row)
    cases = [_flaky(group) for group in groups.values()]
    return sorted(
        (case for case in cases if case.outputs > 1 or case.rescued or _disagree(case.rows)),
        key=lambda case: (-min(case.verdicts.values()) / case.runs, case.case),
    )


def _disagree(rows: Sequence[Row]) -> bool:
    """INFRA in both tries says nothing of the case."""
    return sum(row.good or row.bad for row in rows) > 1


def _flaky(group: Sequence[Row]) -> Flaky:
    oldest: dict[str, Row] = {}
    for row in group:
        oldest.setdefault(row.verdict, row)
    return Flaky(
        case=group[0].case,
        runs=len(group),
        verdicts=dict(Counter(str(row.verdict) for row in group)),
        outputs=len({row.output for row in group if row.output and (row.good or row.bad)}),
        rescued=sum(row.attempt > 1 and row.verdict is not Verdict.INFRA for row in group),
        rows=tuple(oldest.values()),
    )
