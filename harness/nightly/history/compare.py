"""Compares a night with those before it, for terminal, page, JUnit, message and issues.

Only this module and ``case_state``, which has the rule for one case, decide what is new, what
counts and whose it is; the exit code follows.

Failures that one cause may explain are a group: an operator, or an input that changed. A group
states only what its rows show: an operator that a failure names, or that all these failures have
and nothing that passed on their targets; an input that differs from when they last passed."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from harness.core.safe_text import counted, listed
from harness.core.verdict import ExitCode, Verdict, exit_code
from harness.nightly.history.case_state import CaseState, Delta, Standing
from harness.nightly.history.nights import InputDifference, Night, Row, causes, last_tries
from harness.nightly.history.steps import Step, with_alarms

if TYPE_CHECKING:
    from harness.nightly.history.store import History  # imports SQLAlchemy

NIGHTS = 30  # before, that a night is compared with
_TOLD, _HEADLINE = 0.01, 0.1  # by which part a figure has to be another
_NAMED = 4  # operators
_LONG_DIGEST = re.compile(r"\b[0-9a-f]{25,64}\b")
_Key = TypeVar("_Key")


@dataclass(frozen=True)
class FailureGroup:
    """``what`` they share, and ``why`` it is believed to be the cause."""

    what: str
    why: str
    cases: tuple[Standing, ...]

    @property
    def is_new(self) -> bool:
        return any(case.state.is_new for case in self.cases)

    @cached_property
    def changed(self) -> list[InputDifference]:
        """Return the inputs that differ for all of them since they fail so.

        The commit of the user's repository is one, too, which alone explains nothing."""
        first, *others = (case.changed for case in self.cases)
        of_all = [change for change in first if all(change in other for other in others)]
        return causes(of_all)


@dataclass(frozen=True)
class Comparison:
    """A night compared with an earlier one.

    ``before``: the night that it is compared with, None for the first; ``cases``: those of the plan
    in its order, then what is gone; ``partial``: of a shard, which may have none."""

    night: Night
    before: Night | None
    cases: tuple[Standing, ...]
    partial: bool = False

    @cached_property
    def counts(self) -> dict[CaseState, int]:
        """The number of cases in each state that has any, in the order of the states."""
        count = Counter(case.state for case in self.cases)
        return {state: count[state] for state in CaseState if count[state]}

    @property
    def ended(self) -> bool:
        planned = (case for case in self.cases if case.planned)
        return all(case.row is not None and case.row.settled for case in planned)

    def of(self, *states: CaseState) -> list[Standing]:
        return [case for case in self.cases if case.state in states]

    @property
    def new(self) -> list[Standing]:
        return [case for case in self.cases if case.state.is_new]

    @property
    def failures(self) -> list[Standing]:
        """Return what fails and counts, and began on this branch.

        A case that still fails on the branch that it is compared with is that branch's."""
        own = self.before is None or self.before.origin.branch == self.night.origin.branch
        return [case for case in self.cases if case.state.failing and (own or case.state.is_new)]

    @property
    def last_days(self) -> list[str]:
        """The cases whose quarantine ends with the day of this night."""
        shown = {case.case for case in self.cases}
        today = self.night.began[:10]
        return [p.case for p in self.night.plan if p.last_day == today and p.case in shown]

    @cached_property
    def groups(self) -> list[FailureGroup]:
        """The failing cases, grouped by what they share."""
        failing = [case for case in self.cases if case.state.failing and case.row is not None]
        return grouped(failing, [c.row for c in self.cases if c.row is not None and c.row.good])

    @cached_property
    def moved(self) -> list[tuple[Standing, Delta]]:
        """Passing cases and their most changed figure, if any changed; the largest change first."""
        passing = (case for case in self.cases if case.row is not None and case.row.good)
        pairs = [(case, case.deltas[0]) for case in passing if case.deltas]
        told = [pair for pair in pairs if abs(pair[1].relative_change) >= _TOLD]
        return sorted(told, key=lambda pair: -abs(pair[1].relative_change))

    @cached_property
    def steps(self) -> list[tuple[Standing, Step]]:
        """That hold, of all nights that it is compared with; the newest first."""
        pairs = [(case, s) for case in self.cases for s in case.steps if len(s.rows) > 1]
        return sorted(pairs, key=lambda pair: pair[1].first.time, reverse=True)

    @property
    def held(self) -> list[tuple[Standing, Step]]:
        """Steps of the night before that hold in this one."""
        return [(c, s) for c, s in self.steps if len(s.rows) == 2 and s.rows[1] is c.row]

    @property
    def verdict(self) -> str:
        """The night in one sentence."""
        number, new = self.counts, len(self.new)
        if not self.cases:
            return "no case is of this shard" if self.partial else "no case was planned"
        failing = any(state.failing for state in number)
        quarantined = number.get(CaseState.QUARANTINED, 0)
        none = "no new failures" if failing else "no failures" + " that count" * bool(quarantined)
        text = counted(new, "new failure") if new else none
        of_new = (CaseState.CHANGED, CaseState.LOST)
        if parts := [f"{number[s]} {s}" for s in of_new if s in number]:
            text += f" ({', '.join(parts)})"
        if still := number.get(CaseState.STILL, 0):
            text += f", {still} still failing"
        if quarantined:
            text += f", {quarantined} in quarantine"
        if last := self.last_days:
            text += f"; the quarantine of {listed(last, _NAMED)} ends today"
        if unknown := number.get(CaseState.INFRA, 0) + number.get(CaseState.MISSING, 0):
            text += f"; of {unknown} nothing is known"
        if self.moved and abs(self.moved[0][1].relative_change) >= _HEADLINE:
            text += f"; {self.moved[0][0].case}: {self.moved[0][1]}"
        return text

    @property
    def code(self) -> ExitCode:
        """The exit code, as for any run.

        A failure in quarantine does not count, a missing case is INFRA, and a failing case must not
        leave the plan."""
        if not self.cases:
            return ExitCode.PASSED if self.partial else ExitCode.FAILED
        ends = [_end(case) for case in self.cases]
        verdicts = [end for end in ends if end is not None]
        return exit_code(verdicts) if verdicts else ExitCode.PASSED


def _end(case: Standing) -> Verdict | None:
    if case.state in (CaseState.QUARANTINED, CaseState.GONE):
        return None
    if case.state is CaseState.LOST:
        return Verdict.NO_VERDICT
    return Verdict.INFRA if case.row is None else case.row.verdict


def compare(history: History, night: Night, only: Collection[str] | None = None) -> Comparison:
    """``only``: these cases instead of all that were planned. Raises what the history does."""
    before = nights_before(history, night)
    names: dict[str, str] = {}  # an old name, and the one that the case has now
    for each in (*reversed(before), night):
        names |= {old: now for now, old in each.renames.items()}
    by_night: dict[str, list[Row]] = defaultdict(list)
    for row in history.rows([night.id, *(each.id for each in before)]):
        by_night[row.night].append(row)
    tries: dict[str, list[Row]] = {planned.case: [] for planned in night.plan}
    for row in by_night.pop(night.id, ()):
        tries.setdefault(row.case, []).append(row)
    earlier: dict[str, list[Row]] = defaultdict(list)
    for each in reversed(before):
        for name, row in last_tries(by_night[each.id]).items():
            earlier[_today(name, names)].append(row)
    cases = [standing(name, rows, earlier[name], night.alarms) for name, rows in tries.items()]
    excluded = {each.case for each in night.excluded}
    for planned in before[0].plan if before else ():
        name = _today(planned.case, names)
        if name not in tries and name.partition(" [")[0] not in excluded:
            cases.append(Standing(name, (), tuple(earlier[name]), planned=False))
    found = history.culprits(night.id)
    shown = (
        replace(case, culprit=found.get(case.case, ""))
        for case in cases
        if only is None or case.case in only
    )
    return Comparison(night, next(iter(before), None), tuple(shown), only is not None)


def standing(
    name: str, tries: Sequence[Row], earlier: Sequence[Row], alarms: Mapping[str, float]
) -> Standing:
    """Return the Standing of a case. A figure beyond its alarm makes it a failure."""
    if alarms and tries:
        last = max(tries, key=lambda row: row.attempt)
        *earlier, counted = with_alarms([*earlier, last], alarms)
        tries = [counted if row is last else row for row in tries]
    return Standing(name, tuple(tries), tuple(earlier))


def nights_before(history: History, night: Night) -> list[Night]:
    """Return the nights that it is compared with, the newest first.

    They are of its suite and branch, or of the branch that it started from, up to there."""
    last = history.night(night.base) if night.base else night
    if last is None:
        return []
    nights = history.nights(
        suite=night.suite, branch=last.origin.branch, until=last.began, most=NIGHTS + 1
    )
    return [each for each in nights if each.id != night.id][:NIGHTS]


def _today(name: str, names: Mapping[str, str]) -> str:
    seen = {name}
    while (now := names.get(name)) is not None and now not in seen:
        name = now
        seen.add(name)
    return name


def grouped(failing: Sequence[Standing], passed: Sequence[Row]) -> list[FailureGroup]:
    """Put every case in one group.

    New failures come first, among groups and in a group; then the largest group. ``failing`` have a
    row."""
    left = sorted(failing, key=lambda one: not one.state.is_new)
    found: list[FailureGroup] = []
    for together in (_by_model, _by_named_operator, _by_own_operator, _by_change, _by_kind):
        while (group := together(left, passed)) is not None:
            found.append(group)
            left = [one for one in left if one not in group.cases]
    return sorted(found, key=lambda group: (not group.is_new, -len(group.cases)))


def _largest(
    left: Sequence[Standing], keys: Callable[[Standing], Sequence[_Key]], least: int = 1
) -> tuple[_Key, tuple[Standing, ...]] | None:
    """Return the key that most failures have, and those; None if fewer than ``least``.

    It is the first of several."""
    count = Counter(key for one in left for key in keys(one))
    if not count:
        return None
    key, number = count.most_common(1)[0]
    return (key, tuple(one for one in left if key in keys(one))) if number >= least else None


def _row(one: Standing) -> Row:
    assert one.row is not None  # else it would not fail
    return one.row


def _by_model(left: Sequence[Standing], passed: Sequence[Row]) -> FailureGroup | None:
    """Return a model whose file is another one since, on all its targets."""
    found = _largest(left, lambda one: [_row(one).model for c in one.changed if c.what == "model"])
    if found is None:
        return None
    commit = _row(found[1][0]).model_commit
    why = f"its last commit: {commit}" if commit else "its file is another one since they passed"
    return FailureGroup(f"the model {found[0]} changed", why, found[1])


def _by_named_operator(left: Sequence[Standing], passed: Sequence[Row]) -> FailureGroup | None:
    found = _largest(left, lambda one: [name] if (name := _named(_row(one))) else [])
    return found and FailureGroup(f"operator {found[0]}", "each failure names it", found[1])


def _named(row: Row) -> str:
    """Return the operator in the cause's facts, or one of the program's in its text."""
    for facts in (row.cause and row.cause.facts, row.blame and row.blame.facts):
        said = (facts or {}).get("operator")
        if isinstance(said, str) and said:
            return said
    words = "" if row.cause is None else row.cause.text
    return max((name for name in row.operators if name in words), key=len, default="")


def _by_own_operator(left: Sequence[Standing], passed: Sequence[Row]) -> FailureGroup | None:
    """Operators of several failures of a kind that nothing that passed on their targets has."""
    best: dict[tuple[int, ...], list[str]] = {}  # by their places in ``left``
    for kind in dict.fromkeys(_row(one).kind for one in left):
        alike = [n for n, one in enumerate(left) if _row(one).kind == kind]
        for name in sorted({name for n in alike for name in _row(left[n]).operators}):
            places = tuple(n for n in alike if name in _row(left[n]).operators)
            if len(places) > 1 and not _is_innocent(name, [left[n] for n in places], passed):
                best.setdefault(places, []).append(name)
    if not best:
        return None
    most = max(best, key=len)
    names, those = best[most], tuple(left[n] for n in most)
    if len(names) == 1:
        why = "all of these have it, and nothing that passed on their targets"
        return FailureGroup(f"operator {names[0]}", why, those)
    why = "all of these have them, and nothing that passed on their targets has one of them"
    return FailureGroup(f"operators {listed(names, _NAMED)}", why, those)


def _is_innocent(name: str, those: Sequence[Standing], passed: Sequence[Row]) -> bool:
    where = {(_row(one).target, _row(one).source) for one in those}
    return any(name in row.operators for row in passed if (row.target, row.source) in where)


def _by_change(left: Sequence[Standing], passed: Sequence[Row]) -> FailureGroup | None:
    """Return an input that changed between the last good run and the first bad one of several."""
    found = _largest(
        left, lambda one: [c for c in causes(one.changed) if c.what != "repository"], least=2
    )
    if found is None:
        return None
    change, those = found
    why = f"it was {short(change.before)} when they last passed, and is {short(change.after)}"
    return FailureGroup(f"{change.name} changed", why, those)


def _by_kind(left: Sequence[Standing], passed: Sequence[Row]) -> FailureGroup | None:
    if (found := _largest(left, lambda one: [_row(one).kind])) is None:
        return None
    why = "" if len(found[1]) == 1 else "the same verdict and cause; nothing else is shared"
    return FailureGroup(" ".join(word for word in found[0] if word), why, found[1])


def short(value: str) -> str:
    """Shortens each long digest or commit in a value to 12 characters."""
    return _LONG_DIGEST.sub(lambda digest: f"{digest[0][:12]}…", value)
