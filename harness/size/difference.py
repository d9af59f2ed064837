"""The changes between two anatomies, largest first, and a sentence for each cause.

A part is added, removed, grew, shrank or was renamed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from harness.core.tables import read_table
from harness.size.anatomy import Anatomy, Part, PartPath, join, shown

_USED_BY = " of "  # a planned tensor's name: its shape, and the operator it belongs to
_RENAME_SIMILARITY = 0.6  # least similarity of two names that count as a rename
_MOST_PAIRS = 20_000  # of names to compare; beyond that, a rename counts as added and removed


@dataclass(frozen=True)
class Change:
    """``old_path``: the path before a rename. ``old`` or ``new`` is 0 where it does not exist."""

    path: PartPath
    old: int
    new: int
    old_path: PartPath | None = None

    @property
    def delta(self) -> int:
        return self.new - self.old

    @property
    def kind(self) -> str:
        if self.old_path is not None:
            return "renamed"
        if not self.old or not self.new:
            return "added" if self.new else "removed"
        return "grew" if self.delta > 0 else "shrank"

    def to_fields(self) -> dict[str, Any]:
        paths = {"path": join(self.path), "old_path": self.old_path and join(self.old_path)}
        return {**vars(self), **paths, "kind": self.kind, "delta": self.delta}


@dataclass(frozen=True)
class Difference:
    """``parts`` of the file and the ``memory`` that it needs, most bytes first."""

    old_total: int
    new_total: int
    parts: tuple[Change, ...]
    memory: tuple[Change, ...]

    @property
    def delta(self) -> int:
        return self.new_total - self.old_total

    def to_fields(self) -> dict[str, Any]:
        return {
            "old_total": self.old_total,
            "new_total": self.new_total,
            "delta": self.delta,
            "parts": [c.to_fields() for c in self.parts],
            "memory": [c.to_fields() for c in self.memory],
        }


def difference(old: Anatomy, new: Anatomy) -> Difference:
    return Difference(
        old.total, new.total, changes(old.parts, new.parts), changes(old.memory, new.memory)
    )


def changes(old: Iterable[Part], new: Iterable[Part]) -> tuple[Change, ...]:
    """Every path whose size or name changed."""
    before = {p.path: p.bytes for p in old}
    after = {p.path: p.bytes for p in new}
    changed = [
        Change(path, before[path], size)
        for path, size in after.items()
        if path in before and before[path] != size
    ]
    gone = {p: n for p, n in before.items() if p not in after}
    come = {p: n for p, n in after.items() if p not in before}
    changed += _renamed(gone, come)
    changed += [Change(path, size, 0) for path, size in gone.items()]
    changed += [Change(path, 0, size) for path, size in come.items()]
    return tuple(sorted(changed, key=lambda c: (-abs(c.delta), c.path)))


def _renamed(gone: dict[PartPath, int], come: dict[PartPath, int]) -> list[Change]:
    """Move pairs out of both: the same name elsewhere, or a similar name under the same parent."""
    renames: list[Change] = []

    def pair(old: PartPath, new: PartPath) -> None:
        renames.append(Change(new, gone.pop(old), come.pop(new), old))

    elsewhere: dict[tuple[str, int], list[PartPath]] = defaultdict(list)
    beside: dict[PartPath, list[PartPath]] = defaultdict(list)
    for path, size in gone.items():
        elsewhere[path[-1], size].append(path)
        beside[path[:-1]].append(path)
    for path, size in list(come.items()):
        if same := elsewhere.get((path[-1], size)):
            pair(same.pop(), path)
    for path, size in list(come.items()):
        candidates = [p for p in beside.get(path[:-1], ()) if p in gone]
        if len(candidates) * len(come) > _MOST_PAIRS:
            continue
        scored = [(_similarity(p[-1], path[-1]), gone[p] == size, p) for p in candidates]
        best = max(scored, default=(0.0, False, ()), key=lambda s: (s[0], s[1]))
        if best[0] >= _RENAME_SIMILARITY:
            pair(best[2], path)
    return renames


def _similarity(a: str, b: str) -> float:
    """Return the similarity of two names, 0 to 1.

    It is 0 for tensors of different shapes and for numbered things of one name, which are different
    things."""
    if "[" in a or "#" in a or "#" in b:
        return float(_USED_BY in a and a.split(_USED_BY)[0] == b.split(_USED_BY)[0])
    return SequenceMatcher(None, a, b, autojunk=False).ratio()


@dataclass(frozen=True)
class GrowthCause:
    """One change, or ``things`` changes below one path, none of which is large by itself."""

    path: PartPath
    delta: int
    things: int
    change: Change | None


def causes(changed: Sequence[Change]) -> list[GrowthCause]:
    """Return the changes, with scattered small ones combined, most bytes first.

    Padding comes last, whatever its size: it is a consequence of the other changes."""
    combined = _combine((), [c for c in changed if c.delta])
    return sorted(combined, key=lambda c: ("padding" in c.path, -abs(c.delta)))


def _combine(path: PartPath, changed: Sequence[Change]) -> list[GrowthCause]:
    """Combine ``changed``: all below ``path``, which may itself be one of them."""
    if len(changed) == 1 or all(c.path == path for c in changed):
        return [GrowthCause(c.path, c.delta, 1, c) for c in changed]
    below: dict[PartPath, list[Change]] = defaultdict(list)
    for change in changed:
        below[change.path[: len(path) + 1]].append(change)
    moved = sum(abs(c.delta) for c in changed)
    largest = max(abs(sum(c.delta for c in group)) for group in below.values())
    if path and len(below) > 1 and len(changed) > 4 and largest * 4 < moved:
        return [GrowthCause(path, sum(c.delta for c in changed), len(changed), None)]
    return [cause for deeper, group in below.items() for cause in _combine(deeper, group)]


def reasons(difference: Difference, enough: int) -> list[str]:
    """Sentences about the file first, then about the memory it needs."""
    return [*sentences(difference.parts, enough), *sentences(difference.memory, enough)]


def sentences(changed: Sequence[Change], enough: int | None = None) -> list[str]:
    """Return a sentence for each cause, the largest first.

    They explain up to ``enough`` bytes (None: all)."""
    lines, explained = [], 0
    for cause in causes(changed):
        if enough is not None and explained >= enough:
            break
        lines.append(sentence(cause))
        explained += abs(cause.delta)
    return lines


def sentence(cause: GrowthCause) -> str:
    """``+312 B: added the constant tensor int8[64].``"""
    if cause.change is None:
        return (
            f"{cause.delta:+d} B: {cause.things} changes in {shown(cause.path)}, "
            "none of them large by itself."
        )
    return f"{cause.delta:+d} B: {_describe(cause.change)}."


def subject(path: PartPath) -> str:
    name, parent = path[-1], path[-2] if len(path) > 1 else "the file"
    for words, phrase in read_table(__file__):
        if path[0] == words[0] and all(word in path for word in words):
            return str(phrase).format(name=name, parent=parent)
    where = shown(path[:-1])
    return f"{name} in {where}" if where else name


def _describe(change: Change) -> str:
    thing = subject(change.path)
    if change.old_path is not None:
        old = change.old_path[-1]
        origin = f"{old} to" if old != change.path[-1] else f"{shown(change.old_path[:-1])} to"
        return f"renamed {origin} {thing} ({change.old} -> {change.new} B)"
    if change.kind in ("added", "removed"):
        return f"{change.kind} {thing}"
    return f"{thing} {change.kind} from {change.old} to {change.new} B"
