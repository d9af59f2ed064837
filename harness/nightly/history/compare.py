"""A night compared with those before it: what terminal, page, JUnit and GitHub all show."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from harness.core.safe_text import counted
from harness.core.verdict import ExitCode, Verdict, exit_code
from harness.nightly.history.case_state import Delta, Standing, State
from harness.nightly.history.groups import Group, grouped
from harness.nightly.history.model import Night, Row, last_tries
from harness.nightly.history.steps import Step, with_alarms

if TYPE_CHECKING:
    from harness.nightly.history.store import History  # imports SQLAlchemy

NIGHTS = 30  # before, that a night is compared with
_TOLD, _HEADLINE = 0.01, 0.1  # by which part a figure has to be another


@dataclass(frozen=True)
class Comparison:
    """``before``: the night that it is compared with, None for the first; ``cases``: those of the
    plan in its order, then what is gone."""

    night: Night
    before: Night | None
    cases: tuple[Standing, ...]

    @cached_property
    def counts(self) -> dict[State, int]:
        """Of every state that has a case, in the order of the states."""
        count = Counter(case.state for case in self.cases)
        return {state: count[state] for state in State if count[state]}

    @property
    def ended(self) -> bool:
        planned = (case for case in self.cases if case.planned)
        return all(case.row is not None and case.row.settled for case in planned)

    def of(self, *states: State) -> list[Standing]:
        return [case for case in self.cases if case.state in states]

    @cached_property
    def groups(self) -> list[Group]:
        """What fails, by what it shares."""
        failing = [case for case in self.cases if case.state.failing and case.row is not None]
        return grouped(failing, [c.row for c in self.cases if c.row is not None and c.row.good])

    @cached_property
    def moved(self) -> list[tuple[Standing, Delta]]:
        """What passes and has another figure, with the one that changed most; the most first."""
        passing = (case for case in self.cases if case.row is not None and case.row.good)
        pairs = [(case, case.deltas[0]) for case in passing if case.deltas]
        told = [pair for pair in pairs if abs(pair[1].ratio) >= _TOLD]
        return sorted(told, key=lambda pair: -abs(pair[1].ratio))

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
        number = self.counts
        new = sum(count for state, count in number.items() if state.is_new)
        failing = any(state.failing for state in number)
        text = (
            counted(new, "new failure") if new else "no new failures" if failing else "no failures"
        )
        of_new = (State.CHANGED, State.LOST)
        if parts := [f"{number[s]} {s}" for s in of_new if s in number]:
            text += f" ({', '.join(parts)})"
        if still := number.get(State.STILL, 0):
            text += f", {still} still failing"
        if unknown := number.get(State.INFRA, 0) + number.get(State.MISSING, 0):
            text += f"; of {unknown} nothing is known"
        if self.moved and abs(self.moved[0][1].ratio) >= _HEADLINE:
            text += f"; {self.moved[0][0].case}: {self.moved[0][1]}"
        return text

    @property
    def code(self) -> ExitCode:
        """As of any run; a failure in quarantine does not count, a missing case is INFRA, and a
        failing case must not leave."""
        if not self.cases:
            return ExitCode.FAILED
        ends = [_end(case) for case in self.cases]
        verdicts = [end for end in ends if end is not None]
        return exit_code(verdicts) if verdicts else ExitCode.PASSED


def _end(case: Standing) -> Verdict | None:
    """What counts of it; None: nothing."""
    if case.state in (State.QUARANTINED, State.GONE):
        return None
    if case.state is State.LOST:
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
    return Comparison(night, next(iter(before), None), tuple(shown))


def standing(
    name: str, tries: Sequence[Row], earlier: Sequence[Row], alarms: Mapping[str, float]
) -> Standing:
    """With a failure where a figure is beyond its alarm."""
    if alarms and tries:
        last = max(tries, key=lambda row: row.attempt)
        *earlier, counted = with_alarms([*earlier, last], alarms)
        tries = [counted if row is last else row for row in tries]
    return Standing(name, tuple(tries), tuple(earlier))


def nights_before(history: History, night: Night) -> list[Night]:
    """Those that it is compared with, the newest first: of its suite and branch, or of the branch
    that it started from, up to there."""
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
