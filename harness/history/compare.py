"""What is new in a night, since when a case fails, and what changed between two of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.errors.verdict import ExitCode, Verdict, Word, exit_code
from harness.history.model import Difference, Night, Row, last_tries

if TYPE_CHECKING:
    from harness.history.store import History  # SQLAlchemy


class State(Word):
    """How a case of a night stands against the nights before."""

    NEW = "new"  # fails, and passed before or was never run
    STILL = "still failing"
    FIXED = "fixed"
    PASSING = "passing"
    QUARANTINED = "quarantined"  # fails, and that does not count
    INFRA = "infrastructure"  # nothing is known of the product
    SKIPPED = "skipped"
    MISSING = "missing"  # planned, and no row of it


@dataclass(frozen=True)
class Standing:
    """``row``: its last try, None when it is missing; ``before``: the last row of an earlier night
    that says something of the product."""

    case: str
    state: State
    row: Row | None
    before: Row | None
    tries: tuple[Row, ...] = ()


def standings(history: History, night: Night) -> list[Standing]:
    """Of every planned case, in the order of the plan."""
    rows = history.rows([night.id])
    last = last_tries(rows)
    before = history.settled_before(night.began)
    tries: dict[str, list[Row]] = {}
    for row in rows:
        tries.setdefault(row.case, []).append(row)
    names = dict.fromkeys([*(one.case for one in night.plan), *last])
    return [
        Standing(name, _state(last.get(name), before.get(name)), last.get(name), before.get(name),
                 tuple(tries.get(name, ())))
        for name in names
    ]  # fmt: skip


def _state(row: Row | None, before: Row | None) -> State:
    if row is None:
        return State.MISSING
    if row.verdict is Verdict.INFRA:
        return State.INFRA
    if row.verdict is Verdict.SKIPPED:
        return State.SKIPPED
    was_bad = before is not None and before.bad
    if row.good:
        return State.FIXED if was_bad else State.PASSING
    if row.quarantined:
        return State.QUARANTINED
    return State.STILL if was_bad else State.NEW


def code_of(found: Iterable[Standing]) -> ExitCode:
    """As of any other run; a failure in quarantine does not count, and a case that is missing is
    the infrastructure's."""
    counted = [one for one in found if one.state is not State.QUARANTINED]
    verdicts = [Verdict.INFRA if one.row is None else one.row.verdict for one in counted]
    if not verdicts:
        return ExitCode.PASSED if counted != list(found) else ExitCode.FAILED
    return exit_code(verdicts)


class NoSuchCase(UsageError):
    """``case``: the history has no row of it. ``close``: what may have been meant."""

    def __init__(self, case: str, close: Sequence[str]) -> None:
        self.case = case
        self.close = tuple(close)
        super().__init__(
            f"the history has no run of {case}",
            hint=f"did you mean {' or '.join(close)}?" if close else "`hil nightly` makes some",
        )


@dataclass(frozen=True)
class FirstBad:
    """The last time that a case began to fail. ``last_good``: None when it never passed before;
    ``fixed``: the first good one after it, None while it fails. ``unsure``: how many runs between
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
        """The metrics that both have and do not agree on."""
        if self.last_good is None:
            return {}
        before, after = self.last_good.metrics, self.first.metrics
        return {
            name: (before[name], after[name])
            for name in before
            if name in after and before[name] != after[name]
        }


def first_bad(case: str, rows: Sequence[Row]) -> FirstBad | None:
    """``rows`` of the case, the oldest first. None when it never failed."""
    told = _one_per_night(rows)
    definite = [row for row in told if row.good or row.bad]
    end = next((i for i in reversed(range(len(definite))) if definite[i].bad), None)
    if end is None:
        return None
    start = end
    while start > 0 and definite[start - 1].bad:
        start -= 1
    last_good = definite[start - 1] if start else None
    after = 0 if last_good is None else told.index(last_good) + 1
    return FirstBad(
        case=case,
        first=definite[start],
        last_good=last_good,
        fixed=definite[end + 1] if end + 1 < len(definite) else None,
        bad_runs=end - start + 1,
        unsure=told.index(definite[start]) - after,
    )


def _one_per_night(rows: Sequence[Row]) -> list[Row]:
    by_night: dict[str, list[Row]] = {}
    for row in rows:
        by_night.setdefault(row.night, []).append(row)
    return [max(tries, key=lambda row: row.attempt) for tries in by_night.values()]


@dataclass(frozen=True)
class Flaky:
    """A case that ended otherwise with the same program, firmware, toolchain, simulator, target and
    reference. ``rows``: the oldest of each verdict; ``runs``: how many there are of it all;
    ``outputs``: how many different ones; ``rescued``: how often a second try was not INFRA."""

    case: str
    runs: int
    verdicts: dict[str, int]
    outputs: int
    rescued: int
    rows: tuple[Row, ...]


def flaky(rows: Iterable[Row]) -> list[Flaky]:
    """The worst first. Firmware that nobody knows (a build that failed) is never the same."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = (row.case, *row.identity.of_product)
        if row.identity.firmware and row.identity.program:
            groups.setdefault(key, []).append(row)
    found = [_flaky(group) for group in groups.values()]
    return sorted(
        (one for one in found if one.outputs > 1 or one.rescued or _disagree(one.rows)),
        key=lambda one: (-min(one.verdicts.values()) / one.runs, one.case),
    )


def _disagree(rows: Sequence[Row]) -> bool:
    """What the infrastructure ended, both times, says nothing of the case."""
    return sum(row.good or row.bad for row in rows) > 1


def _flaky(group: Sequence[Row]) -> Flaky:
    verdicts: dict[str, int] = {}
    oldest: dict[str, Row] = {}
    for row in group:
        verdicts[row.verdict] = verdicts.get(row.verdict, 0) + 1
        oldest.setdefault(row.verdict, row)
    told = [row for row in group if row.good or row.bad]
    return Flaky(
        case=group[0].case,
        runs=len(group),
        verdicts={str(name): number for name, number in verdicts.items()},
        outputs=len({row.output for row in told if row.output}),
        rescued=sum(row.attempt > 1 and row.verdict is not Verdict.INFRA for row in group),
        rows=tuple(oldest.values()),
    )
