"""Groups failures that one cause may explain: an operator, or an input that changed.

A group says what its rows show and no more: an operator that a failure names, or that all these
failures have and nothing that passed on their targets; an input that differs from when they last
passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.nightly.history.model import NOT_OF_PRODUCT, Difference, Row
from harness.nightly.history.standing import Standing

_NAMED = 4  # operators
_MADE = ("program", "firmware")  # of the other inputs
_NO_CAUSE = (*_MADE, *NOT_OF_PRODUCT)


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
        return _causes(of_all)


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


def _by_model(left: Sequence[Standing], passed: Sequence[Row]) -> Group | None:
    """A model whose file is another one since, on all its targets."""
    edited = [one for one in left if any(change.what == "model" for change in one.changed)]
    if not edited:
        return None
    name = _row(edited[0]).model
    those = tuple(one for one in edited if _row(one).model == name)
    commit = _row(those[0]).model_commit
    why = f"its last commit: {commit}" if commit else "its file is another one since they passed"
    return Group(f"the model {name} changed", why, those)


def _row(one: Standing) -> Row:
    assert one.row is not None  # else it would not fail
    return one.row


def _by_named_operator(left: Sequence[Standing], passed: Sequence[Row]) -> Group | None:
    """The operator that the cause itself names."""
    count = Counter(name for one in left if (name := _named(_row(one))))
    if not count:
        return None
    name, _ = count.most_common(1)[0]
    those = tuple(one for one in left if _named(_row(one)) == name)
    return Group(f"operator {name}", "each failure names it", those)


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
    for kind in dict.fromkeys(_kind(_row(one)) for one in left):
        alike = [n for n, one in enumerate(left) if _kind(_row(one)) == kind]
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
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    why = "all of these have them, and nothing that passed on their targets has one of them"
    return Group(f"operators {', '.join(names[:_NAMED])}{more}", why, those)


def _is_innocent(name: str, those: Sequence[Standing], passed: Sequence[Row]) -> bool:
    where = {(_row(one).target, _row(one).source) for one in those}
    return any(name in row.operators for row in passed if (row.target, row.source) in where)


def _by_change(left: Sequence[Standing], passed: Sequence[Row]) -> Group | None:
    """An input that changed between the last good run and the first bad one of several."""
    count = Counter(change for one in left for change in _inputs(one))
    if not count or count.most_common(1)[0][1] <= 1:
        return None
    most = max(count.values())
    change = min((c for c, number in count.items() if number == most), key=lambda c: c.what)
    those = tuple(one for one in left if change in _inputs(one))
    why = f"it was {short(change.before)} when they last passed, and is {short(change.after)}"
    return Group(f"{change.name} changed", why, those)


def _causes(changed: Sequence[Difference]) -> list[Difference]:
    """Without what is made of the others, unless that is all there is."""
    causes = [change for change in changed if change.what not in _NO_CAUSE]
    return causes or [change for change in changed if change.what in _MADE]


def _inputs(one: Standing) -> list[Difference]:
    return [change for change in _causes(one.changed) if change.what != "repository"]


def _by_kind(left: Sequence[Standing], passed: Sequence[Row]) -> Group | None:
    if not left:
        return None
    kind, _ = Counter(_kind(_row(one)) for one in left).most_common(1)[0]
    those = tuple(one for one in left if _kind(_row(one)) == kind)
    why = "" if len(those) == 1 else "the same verdict and cause; nothing else is shared"
    return Group(" ".join(word for word in kind if word), why, those)


def _kind(row: Row) -> tuple[str, str]:
    return str(row.verdict), "" if row.cause is None else row.cause.kind


def short(value: str, most: int = 24) -> str:
    """The beginning of a digest or commit."""
    return value if len(value) <= most else f"{value[:12]}…"
