"""Groups failures that one cause may explain: an operator, or an input that changed.

A group says what its rows show and no more: an operator that a failure names, or that all these
failures have and nothing that passed on their targets; an input that differs from when they last
passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from harness.core.safe_text import listed
from harness.nightly.history.case_state import Standing
from harness.nightly.history.model import Difference, Row, causes

_Key = TypeVar("_Key")
_NAMED = 4  # operators


@dataclass(frozen=True)
class Group:
    """``what`` they share, and ``why`` it is believed to be the cause."""

    what: str
    why: str
    cases: tuple[Standing, ...]

    @property
    def is_new(self) -> bool:
        return any(case.state.is_new for case in self.cases)

    @cached_property
    def changed(self) -> list[Difference]:
        """Inputs that are others for all of them since they fail so: the commit of the user's
        repository, too, which alone explains nothing."""
        first, *others = (case.changed for case in self.cases)
        of_all = [change for change in first if all(change in other for other in others)]
        return causes(of_all)


def grouped(failing: Sequence[Standing], passed: Sequence[Row]) -> list[Group]:
    """Every case in one group. What is new comes first, of groups and in a group; then the largest.
    ``failing`` have a row."""
    left = sorted(failing, key=lambda one: not one.state.is_new)
    found: list[Group] = []
    for together in (_by_model, _by_named_operator, _by_own_operator, _by_change, _by_kind):
        while (group := together(left, passed)) is not None:
            found.append(group)
            left = [one for one in left if one not in group.cases]
    return sorted(found, key=lambda group: (not group.is_new, -len(group.cases)))


def _largest(
    left: Sequence[Standing], keys: Callable[[Standing], Sequence[_Key]], least: int = 1
) -> tuple[_Key, tuple[Standing, ...]] | None:
    """The key that most failures have, the first of several, and those; None if fewer than
    ``least`` have it."""
    count = Counter(key for one in left for key in keys(one))
    if not count:
        return None
    key, number = count.most_common(1)[0]
    return (key, tuple(one for one in left if key in keys(one))) if number >= least else None


def _row(one: Standing) -> Row:
    assert one.row is not None  # else it would not fail
    return one.row


def _by_model(left: Sequence[Standing], passed: Sequence[Row]) -> Group | None:
    """A model whose file is another one since, on all its targets."""
    found = _largest(left, lambda one: [_row(one).model for c in one.changed if c.what == "model"])
    if found is None:
        return None
    commit = _row(found[1][0]).model_commit
    why = f"its last commit: {commit}" if commit else "its file is another one since they passed"
    return Group(f"the model {found[0]} changed", why, found[1])


def _by_named_operator(left: Sequence[Standing], passed: Sequence[Row]) -> Group | None:
    """The operator that the cause itself names."""
    found = _largest(left, lambda one: [name] if (name := _named(_row(one))) else [])
    return found and Group(f"operator {found[0]}", "each failure names it", found[1])


def _named(row: Row) -> str:
    """The operator in the cause's facts, or one of the program's in its text."""
    for facts in (
        None if row.cause is None else row.cause.facts,
        None if row.blame is None else row.blame.facts,
    ):
        said = (facts or {}).get("operator")
        if isinstance(said, str) and said:
            return said
    words = "" if row.cause is None else row.cause.text
    return max((name for name in row.operators if name in words), key=len, default="")


def _by_own_operator(left: Sequence[Standing], passed: Sequence[Row]) -> Group | None:
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
        return Group(f"operator {names[0]}", why, those)
    why = "all of these have them, and nothing that passed on their targets has one of them"
    return Group(f"operators {listed(names, _NAMED)}", why, those)


def _is_innocent(name: str, those: Sequence[Standing], passed: Sequence[Row]) -> bool:
    where = {(_row(one).target, _row(one).source) for one in those}
    return any(name in row.operators for row in passed if (row.target, row.source) in where)


def _by_change(left: Sequence[Standing], passed: Sequence[Row]) -> Group | None:
    """An input that changed between the last good run and the first bad one of several."""
    if (found := _largest(left, _inputs, least=2)) is None:
        return None
    change, those = found
    why = f"it was {short(change.before)} when they last passed, and is {short(change.after)}"
    return Group(f"{change.name} changed", why, those)


def _inputs(one: Standing) -> list[Difference]:
    return [change for change in causes(one.changed) if change.what != "repository"]


def _by_kind(left: Sequence[Standing], passed: Sequence[Row]) -> Group | None:
    if (found := _largest(left, lambda one: [_row(one).kind])) is None:
        return None
    why = "" if len(found[1]) == 1 else "the same verdict and cause; nothing else is shared"
    return Group(" ".join(word for word in found[0] if word), why, found[1])


def short(value: str, most: int = 24) -> str:
    """The beginning of a digest or commit."""
    return value if len(value) <= most else f"{value[:12]}…"
